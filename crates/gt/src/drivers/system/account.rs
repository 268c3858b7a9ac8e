//! The account that this process runs under, and the name of its machine.

use std::ffi::CStr;
use std::net::IpAddr;

/// Returns the user's name: what the environment says, or else that of the account.
pub fn user() -> String {
    let variables = ["LOGNAME", "USER", "LNAME", "USERNAME"];
    let named = variables.into_iter().filter_map(|name| std::env::var(name).ok());
    named.into_iter().find(|name| !name.is_empty()).unwrap_or_else(account)
}

/// Returns the name of the process's account, or its number if it has no name.
fn account() -> String {
    // SAFETY: the call cannot fail, and touches no memory of ours.
    let number = unsafe { libc::geteuid() };
    let mut entry = std::mem::MaybeUninit::<libc::passwd>::zeroed();
    let (mut buffer, mut found) = ([0 as libc::c_char; 4096], std::ptr::null_mut());
    // SAFETY: the call writes an entry, and its texts into `buffer`, which has the given length;
    // both live until the name is copied below.
    let status = unsafe {
        let (entry, buffer, length) = (entry.as_mut_ptr(), buffer.as_mut_ptr(), buffer.len());
        libc::getpwuid_r(number, entry, buffer, length, &raw mut found)
    };
    if status != 0 || found.is_null() {
        return number.to_string();
    }
    // SAFETY: `found` points to `entry`, which the call has filled; its name ends with a zero.
    let name = unsafe { CStr::from_ptr((*found).pw_name) };
    name.to_string_lossy().into_owned()
}

/// Returns the machine's name without its domain; empty if it has none.
pub fn host() -> String {
    let mut buffer = [0u8; 256];
    // SAFETY: the call writes at most the length that is given; the last byte stays zero.
    let status = unsafe { libc::gethostname(buffer.as_mut_ptr().cast(), buffer.len() - 1) };
    let name = CStr::from_bytes_until_nul(&buffer).ok().filter(|_| status == 0);
    let name = name.map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match (name.parse::<IpAddr>(), name.split_once('.')) {
        (Err(_), Some((host, _))) => host.to_string(),
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_a_user_and_a_machine() {
        assert!(!account().is_empty() && !user().is_empty());
        assert!(!host().is_empty() && !host().contains('\0'));
    }
}
