//! The two host functions of the contract, once for both engines.

use horchestra_flight::contract::{Buffer, MALLOC, MALLOC_ALIAS, Question, Refusal, State};

use crate::session::Session;
use crate::stop::Stop;
use crate::wasi::Guest;

/// The longest name, namespace, kind, apiVersion or selector in bytes.
const MAX_ARGUMENT: u32 = 64 << 10;

/// A guest inside a call of a host function.
pub(crate) trait Caller {
    /// The engine's error.
    type Error;

    /// Ends the evaluation.
    fn stop(stop: Stop) -> Self::Error;

    /// The state of the evaluation and the guest's memory.
    fn view(&mut self) -> (&mut Session, Guest<'_>);

    /// Calls the guest's allocator: `None` if it exports none of the right type.
    fn allocate(&mut self, size: u32) -> Result<Option<u64>, Self::Error>;
}

pub(crate) fn k8s_lookup<C: Caller>(
    caller: &mut C,
    state: u32,
    [name, namespace, kind, api_version]: [u64; 4],
) -> Result<u64, C::Error> {
    let arguments = [("name", name), ("namespace", namespace), ("kind", kind), ("api_version", api_version)];
    answer(caller, "k8s_lookup", state, arguments, |[name, namespace, kind, api_version]| Question::Lookup {
        name,
        namespace,
        kind,
        api_version,
    })
}

pub(crate) fn k8s_rest_mapping<C: Caller>(
    caller: &mut C,
    state: u32,
    [group_or_api_version, kind]: [u64; 2],
) -> Result<u64, C::Error> {
    let arguments = [("group_or_api_version", group_or_api_version), ("kind", kind)];
    answer(caller, "k8s_rest_mapping", state, arguments, |[group_or_api_version, kind]| {
        Question::RestMapping { group_or_api_version, kind }
    })
}

/// Reads the arguments, asks, and hands the answer to the guest. The state is written only if it
/// is not [`State::Ok`]: a guest clears it before the call.
fn answer<C: Caller, const N: usize>(
    caller: &mut C,
    function: &str,
    state: u32,
    arguments: [(&str, u64); N],
    question: impl FnOnce([String; N]) -> Question,
) -> Result<u64, C::Error> {
    let (session, guest) = caller.view();
    if session.allocating {
        return Err(broken::<C>(
            function,
            "the flight's allocator calls it in turn; an allocator must not look things up",
        ));
    }
    session.remaining().and_then(|_| session.count_lookup()).map_err(C::stop)?;
    if guest.bytes(state, 4).is_err() {
        return Err(broken::<C>(
            function,
            format_args!("the state pointer {state:#x} is outside the flight's memory"),
        ));
    }
    let mut texts = [const { String::new() }; N];
    let mut bad = None;
    for (text, (name, value)) in texts.iter_mut().zip(arguments) {
        match read(&guest, Buffer(value)) {
            Ok(read) => *text = read,
            Err(Argument::Outside) => {
                let buffer = Buffer(value);
                return Err(broken::<C>(
                    function,
                    format_args!("its argument {name} ({buffer:?}) is outside the flight's memory"),
                ));
            }
            Err(Argument::Unreadable(problem)) => bad = bad.or(Some(format!("{function}: {name} {problem}"))),
        }
    }
    let asked = match bad {
        Some(text) => Err(Refusal::State(State::Error, text)),
        None => session.host.clone().ask(question(texts)),
    };
    let (session, mut guest) = caller.view();
    session.remaining().map_err(C::stop)?;
    let bytes = match asked {
        Ok(json) => json,
        Err(Refusal::Pending) => return Err(C::stop(Stop::Pending)),
        Err(Refusal::State(number, text)) => {
            // A refusal must not look like an answer.
            let number = if number == State::Ok { State::Error } else { number };
            guest
                .write_u32(state, number as u32)
                .map_err(|_| broken::<C>(function, "the state pointer moved"))?;
            text.into_bytes()
        }
    };
    hand_over(caller, function, &bytes)
}

/// Puts bytes into memory that the guest allocates, and returns what its allocator returned.
fn hand_over<C: Caller>(caller: &mut C, function: &str, bytes: &[u8]) -> Result<u64, C::Error> {
    if bytes.is_empty() {
        return Ok(0);
    }
    let size =
        u32::try_from(bytes.len()).map_err(|_| broken::<C>(function, "the answer is larger than 4 GiB"))?;
    caller.view().0.allocating = true;
    let allocated = caller.allocate(size);
    let (session, mut guest) = caller.view();
    session.allocating = false;
    let Some(buffer) = allocated? else {
        return Err(broken::<C>(
            function,
            format_args!(
                "the flight exports no `{MALLOC}` or `{MALLOC_ALIAS}` of type (i32) -> i64 to put the answer in; \
                 build it with an SDK that does"
            ),
        ));
    };
    guest.write(Buffer(buffer).address(), bytes).map_err(|_| {
        let buffer = Buffer(buffer);
        broken::<C>(
            function,
            format_args!(
                "the flight's allocator returned {buffer:?} for {size} bytes, which is outside its memory"
            ),
        )
    })?;
    Ok(buffer)
}

enum Argument {
    Outside,
    Unreadable(&'static str),
}

fn read(guest: &Guest<'_>, buffer: Buffer) -> Result<String, Argument> {
    match buffer.length() {
        0 => Ok(String::new()),
        length if length > MAX_ARGUMENT => match guest.bytes(buffer.address(), length) {
            Ok(_) => Err(Argument::Unreadable("is longer than 64 KiB")),
            Err(_) => Err(Argument::Outside),
        },
        length => {
            let bytes = guest.bytes(buffer.address(), length).map_err(|_| Argument::Outside)?;
            std::str::from_utf8(bytes).map(str::to_owned).map_err(|_| Argument::Unreadable("is not UTF-8"))
        }
    }
}

fn broken<C: Caller>(function: &str, problem: impl std::fmt::Display) -> C::Error {
    C::stop(Stop::Broken(format!("host.{function}: {problem}")))
}
