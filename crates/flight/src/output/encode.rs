//! A desired state as the text that its flight prints.

use horchestra_core::{DesiredState, Error, Extent, Object, Result};
use serde_json::Value;

use super::identity;
use crate::contract::EXIT_STATUS_ONLY;

/// The bytes for stdout and the exit code. `desired` must have passed [`DesiredState::checked`].
///
/// Fails if the desired state has the resource itself among its resources, which on the other side
/// would be taken for its status.
pub fn encode(desired: &DesiredState, instance: &Object) -> Result<(Vec<u8>, i32)> {
    if let Some(own) = desired.resources().find(|m| identity::is(m, instance)) {
        return Err(Error::invalid(
            own.reference(),
            "is the resource itself; set its status instead of returning it",
        ));
    }
    let own = identity::write(desired, instance);
    let mut stages: Vec<Vec<&Value>> =
        desired.stages().iter().map(|stage| stage.iter().map(|m| m.value()).collect()).collect();
    let code = match (desired.extent(), &own) {
        (Extent::Exactly, own) => {
            if let Some(last) = stages.last_mut() {
                last.extend(own);
            }
            0
        }
        (Extent::Nothing, None) => 0,
        (Extent::Nothing, Some(own)) => {
            // An empty stage says that nothing is wanted; a status alone would not say so.
            stages = vec![vec![], vec![own]];
            0
        }
        (Extent::Unsaid, own) => {
            stages = vec![own.iter().collect()];
            EXIT_STATUS_ONLY
        }
    };
    let text = match stages.as_slice() {
        [] => b"[]".to_vec(),
        [one] => serde_json::to_vec(one)?,
        more => serde_json::to_vec(more)?,
    };
    Ok((text, code))
}
