//! The read side of a flight: questions to its host.

use std::sync::Arc;

use horchestra_core::{Answer, Read, Result, Source, async_trait};

use crate::contract::Host;
use crate::lookup::{json_to_answer, read_to_question};

/// Reads by asking a flight's host, which answers at once.
#[derive(Clone)]
pub struct HostSource(pub Arc<dyn Host>);

#[async_trait]
impl Source for HostSource {
    async fn read(&self, read: &Read) -> Result<Answer> {
        json_to_answer(read, self.0.ask(read_to_question(read)?))
    }
}

impl std::fmt::Debug for HostSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HostSource")
    }
}
