//! The launcher as a program of its own: nothing but [`horchestra_systemd::launch::run_if_asked`].

fn main() -> std::process::ExitCode {
    horchestra_systemd::launch::run_if_asked();
    eprintln!("this program starts a workload for a supervisor; it is of no use by itself");
    std::process::ExitCode::FAILURE
}
