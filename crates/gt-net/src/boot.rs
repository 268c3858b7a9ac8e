//! Which boot of which machine a process runs in.

/// A text that differs between machines, and between boots of one machine; `None` where the system
/// has no such text.
#[cfg(target_os = "linux")]
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let id = text.trim();
    (!id.is_empty()).then(|| id.to_string())
}

/// As above, from the kernel's variable `kern.bootsessionuuid`.
#[cfg(target_os = "macos")]
pub fn boot_id() -> Option<String> {
    let mut text = [0u8; 64];
    let mut length = text.len();
    // SAFETY: the name is a C string, and `length` says how many bytes there are in `text`; nothing
    // is set.
    let status = unsafe {
        libc::sysctlbyname(
            c"kern.bootsessionuuid".as_ptr(),
            text.as_mut_ptr().cast(),
            &raw mut length,
            std::ptr::null_mut(),
            0,
        )
    };
    let id = std::ffi::CStr::from_bytes_until_nul(&text).ok()?.to_str().ok()?;
    (status == 0 && !id.is_empty()).then(|| id.to_string())
}

/// Like above, on other systems.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
pub fn boot_id() -> Option<String> {
    None
}
