//! The imports of the module `host`, and the allocator that the host calls meanwhile.

use std::sync::{Mutex, PoisonError};

use crate::contract::{Buffer, State};

#[allow(unsafe_code, reason = "imports are unsafe by nature; the two calls are below")]
#[link(wasm_import_module = "host")]
unsafe extern "C" {
    fn k8s_lookup(state: *mut u32, name: u64, namespace: u64, kind: u64, api_version: u64) -> u64;
    fn k8s_rest_mapping(state: *mut u32, group_or_api_version: u64, kind: u64) -> u64;
}

/// What the host asked memory for. It asks once in each call, and writes the answer there.
static ANSWER: Mutex<Option<Vec<u8>>> = Mutex::new(None);

/// Memory for the host to put an answer in: the export `malloc`, or where libc owns that name,
/// `horchestra_malloc`. It is here, beside what takes the answer, so that a program that never
/// asks has no such export either.
#[allow(unsafe_code, reason = "an export by a fixed name")]
// SAFETY: nothing else in a program without a libc is called `malloc`, and nothing anywhere
// `horchestra_malloc`.
#[cfg_attr(target_os = "unknown", unsafe(export_name = "malloc"))]
#[cfg_attr(not(target_os = "unknown"), unsafe(export_name = "horchestra_malloc"))]
extern "C" fn allocate(size: u32) -> u64 {
    if size == 0 {
        return 0;
    }
    let mut answer = vec![0u8; size as usize];
    // An address of a 32-bit memory.
    let buffer = Buffer::new(answer.as_mut_ptr() as usize as u32, size);
    *ANSWER.lock().unwrap_or_else(PoisonError::into_inner) = Some(answer);
    buffer.0
}

/// Asks for one object or the list of a kind, as JSON. An empty namespace is the host's default.
pub fn lookup(
    name: &str,
    namespace: &str,
    kind: &str,
    api_version: &str,
) -> Result<Vec<u8>, (State, String)> {
    ask(|state| {
        #[allow(unsafe_code, reason = "a call of the host")]
        // SAFETY: the strings and the state outlive the call. The host reads the strings, writes
        // 4 bytes to the state, calls `allocate` and writes to what that returned, and no more.
        unsafe {
            k8s_lookup(state, pack(name), pack(namespace), pack(kind), pack(api_version))
        }
    })
}

/// Asks how a kind is served, as JSON: `Group`, `Version`, `Kind`, `Resource`, `Namespaced`. The
/// first argument is `group` or `group/version`, and empty for the core group.
pub fn rest_mapping(group_or_api_version: &str, kind: &str) -> Result<Vec<u8>, (State, String)> {
    ask(|state| {
        #[allow(unsafe_code, reason = "a call of the host")]
        // SAFETY: as in `lookup`.
        unsafe {
            k8s_rest_mapping(state, pack(group_or_api_version), pack(kind))
        }
    })
}

fn ask(call: impl FnOnce(*mut u32) -> u64) -> Result<Vec<u8>, (State, String)> {
    // The host writes the state only if it is an error.
    let mut state = State::Ok as u32;
    let buffer = Buffer(call(&raw mut state));
    let mut answer = ANSWER.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    answer.truncate(buffer.length() as usize);
    match State::from_u32(state) {
        State::Ok => Ok(answer),
        error => Err((error, String::from_utf8_lossy(&answer).into_owned())),
    }
}

fn pack(text: &str) -> u64 {
    // An address and a length of a 32-bit memory.
    Buffer::new(text.as_ptr() as usize as u32, text.len() as u32).0
}
