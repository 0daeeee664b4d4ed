//! Just enough of a shell for the commands of the examples, as a static program in an image of its own.
//!
//! It knows `;`, `echo`, `sleep`, `exit`, `exec`, `true`, `false`, `>&2`, quotes, `$NAME` and `$(cat FILE)`.

use std::process::exit;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let script = match arguments.as_slice() {
        [] => "echo hello",
        [flag, script, ..] if flag == "-c" => script.as_str(),
        other => refuse(&format!("it only takes -c SCRIPT, not {other:?}")),
    };
    for words in commands(script) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        run(&words);
    }
}

fn refuse(problem: &str) -> ! {
    eprintln!("sh of the demonstration: {problem}");
    exit(2)
}

fn run(words: &[&str]) {
    match words {
        ["exec", rest @ ..] => {
            run(rest);
            exit(0);
        }
        ["echo", words @ .., ">&2"] => eprintln!("{}", words.join(" ")),
        ["echo", words @ ..] => println!("{}", words.join(" ")),
        ["sleep", seconds] => match seconds.parse() {
            Ok(seconds) => std::thread::sleep(std::time::Duration::from_secs_f64(seconds)),
            Err(_) => refuse(&format!("{seconds} seconds?")),
        },
        ["exit"] => exit(0),
        ["true"] => {}
        ["false"] => exit(1),
        ["exit", code] => exit(code.parse().unwrap_or(2)),
        [] => {}
        other => refuse(&format!("no such command: {other:?}")),
    }
}

/// The words of each command.
fn commands(script: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut rest = script.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, quote) {
            (c, Some(q)) if c == q => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('$', None | Some('"')) => word.get_or_insert_default().push_str(&expand(&mut rest)),
            (' ' | '\n' | ';', None) => {
                if let (Some(word), Some(last)) = (word.take(), all.last_mut()) {
                    last.push(word);
                }
                if c != ' ' {
                    all.push(Vec::new());
                }
            }
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    if let (Some(word), Some(last)) = (word, all.last_mut()) {
        last.push(word);
    }
    all
}

/// What stands after a `$`.
fn expand(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    if rest.next_if_eq(&'(').is_some() {
        let inner: String = rest.by_ref().take_while(|c| *c != ')').collect();
        let Some(path) = inner.trim().strip_prefix("cat ") else { refuse(&format!("$({inner})?")) };
        let text = std::fs::read_to_string(path.trim());
        return text.unwrap_or_else(|e| refuse(&format!("{path}: {e}"))).trim_end().to_owned();
    }
    let mut name = String::new();
    while let Some(c) = rest.next_if(|c| c.is_ascii_alphanumeric() || *c == '_') {
        name.push(c);
    }
    std::env::var(&name).unwrap_or_default()
}
