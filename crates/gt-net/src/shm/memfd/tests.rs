use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;

use gt_ir::data::SharedBlock;

use super::*;

/// A file in a block's format, with these seals.
fn forged(header: Header, length: u64, seals: i32) -> (File, SharedBlock) {
    // SAFETY: the name is a C string; the result is owned by `File` alone.
    let file = unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        File::from_raw_fd(libc::memfd_create(NAME.as_ptr(), flags))
    };
    file.write_all_at(&header.to_bytes(), 0).unwrap();
    file.set_len(length).unwrap();
    // SAFETY: the descriptor is open; the call changes no memory of this process.
    assert_eq!(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, 0);
    let Header { token, length } = header;
    let block = SharedBlock { pid: std::process::id(), fd: file.as_raw_fd(), length, token };
    (file, block)
}

fn refusal(block: &SharedBlock) -> String {
    map(block).expect_err("it is no good block").to_string()
}

#[test]
fn a_block_is_read_back_and_outlives_its_owner() {
    for make in [OwnedBlock::sealed, OwnedBlock::reusable] {
        for length in [1, 5000, 3 << 20] {
            let values: Vec<u8> = (0..length).map(|index| index as u8).collect();
            let owned = make(&values).unwrap();
            let bytes = map(&owned.describe()).unwrap();
            drop(owned);
            assert_eq!(&bytes[..], &values);
            assert_eq!(bytes.as_ptr() as usize % 64, 0);
        }
    }
}

#[test]
fn a_block_is_used_again_and_values_that_were_read_stay() {
    tidy();
    let mut owned = OwnedBlock::reusable(&[7; 5000]).unwrap();
    let bytes = map(&owned.describe()).unwrap();
    let part = bytes.slice(10..20);
    drop(bytes);
    let before = owned.describe();
    owned.rewrite(&[9; 4999]).unwrap();
    assert!(map(&before).is_err(), "the values before are gone");
    assert_eq!(&map(&owned.describe()).unwrap()[..], &[9; 4999]);
    assert_eq!(&part[..], &[7; 10]);
    for round in 0..20u8 {
        let values = vec![round; 4900 + usize::from(round)];
        owned.rewrite(&values).unwrap();
        assert_eq!(&map(&owned.describe()).unwrap()[..], &values);
    }
    assert!(owned.rewrite(&[1; 5001]).is_err(), "there is no room");
    // Another block with the same descriptor is not mistaken for it.
    drop(owned);
    let others: Vec<OwnedBlock> =
        (0..8).map(|other| OwnedBlock::reusable(&[other; 5000]).unwrap()).collect();
    for (number, other) in others.iter().enumerate() {
        assert_eq!(&map(&other.describe()).unwrap()[..], &[number as u8; 5000]);
    }
}

#[test]
fn a_sealed_block_is_written_by_nobody() {
    let mut owned = OwnedBlock::sealed(&[7; 5000]).unwrap();
    let bytes = map(&owned.describe()).unwrap();
    assert!(owned.rewrite(&[9; 5000]).is_err());
    let path = format!("/proc/self/fd/{}", owned.describe().fd);
    let file = File::options().read(true).write(true).open(path).unwrap();
    assert!(file.write_all_at(&[9; 10], 100).is_err());
    assert!(file.set_len(10).is_err());
    assert!(memmap2::MmapRaw::map_raw(&file).is_err());
    assert_eq!(&bytes[..], &[7; 5000]);
}

#[test]
fn what_is_not_sealed_is_refused() {
    let header = Header::new(1000);
    let end = (HEADER + 1000) as u64;
    for seals in [0, libc::F_SEAL_GROW, libc::F_SEAL_WRITE] {
        let (_file, block) = forged(header, end, seals);
        assert!(refusal(&block).contains("not sealed"), "{}", refusal(&block));
    }
    for seals in [LENGTH_SEALS, ALL_SEALS, libc::F_SEAL_SHRINK] {
        let (_file, block) = forged(header, end, seals);
        assert_eq!(&map(&block).unwrap()[..], &[0; 1000]);
    }
}

#[test]
fn a_block_of_another_length_is_an_error() {
    for seals in [LENGTH_SEALS, ALL_SEALS] {
        for length in [0, 1, 63, 64, 65, 1063] {
            let (_file, block) = forged(Header::new(1000), length, seals);
            assert!(refusal(&block).contains("length"), "{length}: {}", refusal(&block));
        }
        // The header decides where the values end.
        let (_file, block) = forged(Header::new(1000), 2000, seals);
        assert!(map(&block).is_ok());
        for length in [0, 999, 1001, 1936] {
            assert!(refusal(&SharedBlock { length, ..block }).contains("not as described"));
        }
    }
    // A file that could be shortened is not mapped, and a mapped one cannot be shortened.
    let (file, block) = forged(Header::new(1000), 2000, 0);
    file.set_len(100).unwrap();
    assert!(map(&block).is_err());
    let owned = OwnedBlock::reusable(&[7; 100_000]).unwrap();
    let bytes = map(&owned.describe()).unwrap();
    let path = format!("/proc/self/fd/{}", owned.describe().fd);
    let file = File::options().write(true).open(path).unwrap();
    assert!(file.set_len(10).is_err());
    assert_eq!(bytes[99_999], 7);
}

/// A read concurrent with a write fails, or returns either the old values or the new.
#[test]
fn a_block_that_is_written_while_it_is_read_gives_nothing_false() {
    let mut owned = OwnedBlock::reusable(&[0; 1 << 18]).unwrap();
    let latest = std::sync::Mutex::new(owned.describe());
    let is_over = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..200u8 {
                owned.rewrite(&[round; 1 << 18]).unwrap();
                *latest.lock().unwrap() = owned.describe();
            }
            is_over.store(true, std::sync::atomic::Ordering::Release);
        });
        while !is_over.load(std::sync::atomic::Ordering::Acquire) {
            let block = *latest.lock().unwrap();
            if let Ok(bytes) = map(&block) {
                assert!(bytes.iter().all(|byte| *byte == bytes[0]));
            }
        }
    });
}

#[test]
fn false_descriptions_are_refused() {
    for owned in [OwnedBlock::sealed(&[1; 100]), OwnedBlock::reusable(&[1; 100])] {
        let owned = owned.unwrap();
        let good = owned.describe();
        let check = |block: SharedBlock| assert!(map(&block).is_err(), "{block:?}");
        check(SharedBlock { length: 99, ..good });
        check(SharedBlock { length: u64::MAX, ..good });
        check(SharedBlock { token: good.token ^ 1, ..good });
        check(SharedBlock { fd: 0, ..good });
        check(SharedBlock { fd: -1, ..good });
        check(SharedBlock { pid: 1, ..good });
        check(SharedBlock { pid: u32::MAX, ..good });
        let file = File::open("/proc/self/exe").unwrap();
        check(SharedBlock { fd: file.as_raw_fd(), ..good });
        assert!(map(&good).is_ok());
    }
}
