//! The host's functions for wasmi.

use horchestra_flight::contract::{HOST_MODULE, K8S_LOOKUP, K8S_REST_MAPPING};
use wasmi::{Caller, Engine, Error, Linker};

use super::context::{Context, view};
use crate::hostcalls;
use crate::stop::Stop;
use crate::wasi::{self, for_each_wasi_function, wasi_call};

/// Everything a flight can import.
pub(super) fn linker(engine: &Engine) -> Result<Linker<Context>, Error> {
    let mut linker = Linker::new(engine);

    macro_rules! define {
        ($($name:ident ( $($arg:ident : $ty:ident),* $(,)? ) $(= $errno:ident)? ;)*) => {$(
            linker.func_wrap(
                wasi::MODULE,
                stringify!($name),
                |mut caller: Caller<'_, Context>, $($arg: $ty),*| -> Result<i32, Error> {
                    let (session, mut guest) = view(&mut caller);
                    let guest = &mut guest;
                    let outcome: wasi::Outcome = wasi_call!($name(session, guest) ($($arg)*) $(= $errno)?);
                    outcome.map(|errno| errno.0).map_err(Error::host)
                },
            )?;
        )*};
    }
    for_each_wasi_function!(define);

    linker.func_wrap(wasi::MODULE, "proc_exit", |code: i32| Err::<(), _>(Error::host(Stop::Exit(code))))?;
    linker.func_wrap(
        HOST_MODULE,
        K8S_LOOKUP,
        |mut caller: Caller<'_, Context>,
         state: u32,
         name: u64,
         namespace: u64,
         kind: u64,
         api_version: u64| {
            hostcalls::k8s_lookup(&mut caller, state, [name, namespace, kind, api_version])
        },
    )?;
    linker.func_wrap(
        HOST_MODULE,
        K8S_REST_MAPPING,
        |mut caller: Caller<'_, Context>, state: u32, group: u64, kind: u64| {
            hostcalls::k8s_rest_mapping(&mut caller, state, [group, kind])
        },
    )?;
    Ok(linker)
}
