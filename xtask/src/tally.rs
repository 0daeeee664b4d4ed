//! How many tests passed, from what `cargo test` prints.

use std::fmt;

/// Sums of all test programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    pub(crate) ignored: u64,
}

impl Tally {
    /// Sums the lines `test result: ok. 5 passed; 0 failed; 1 ignored; …`.
    pub(crate) fn of(log: &str) -> Self {
        let mut sum = Self::default();
        for line in log.lines().filter_map(|l| l.trim_start().strip_prefix("test result: ")) {
            for part in line.split(['.', ';']) {
                let mut words = part.split_whitespace();
                let (Some(Ok(count)), Some(what)) = (words.next().map(str::parse::<u64>), words.next())
                else {
                    continue;
                };
                match what {
                    "passed" => sum.passed += count,
                    "failed" => sum.failed += count,
                    "ignored" => sum.ignored += count,
                    _ => {}
                }
            }
        }
        sum
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.ignored > 0 {
            write!(f, ", {} ignored", self.ignored)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_programs_are_summed() {
        let log = "\
running 3 tests
test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: FAILED. 11 passed; 2 failed; 1 ignored; 4 measured; 9 filtered out; finished in 12.34s
error: test failed";
        let tally = Tally::of(log);
        assert_eq!(tally, Tally { passed: 14, failed: 2, ignored: 1 });
        assert_eq!(tally.to_string(), "14 passed, 2 failed, 1 ignored");
        assert_eq!(Tally::of("no tests here").to_string(), "0 passed, 0 failed");
    }
}
