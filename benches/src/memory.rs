//! What a cached object takes, beside kube-runtime's store of the same.

use horchestra::Object;
use kube_core::DynamicObject;
use kube_runtime::reflector;
use kube_runtime::watcher::Event;

use crate::table::Table;
use crate::thing::{Thing, stored};
use crate::{Failure, allocated};

const COUNT: usize = 20_000;

pub fn run(table: &mut Table) -> Result<(), Failure> {
    let before = allocated::bytes();
    let ours: Vec<Object> = (0..COUNT).map(|i| Object::from_value(&stored(i))).collect::<Result<_, _>>()?;
    let our_bytes = allocated::bytes() - before;
    drop(ours);

    let before = allocated::bytes();
    let (_reader, mut writer) = reflector::store::<Thing>();
    writer.apply_watcher_event(&Event::Init);
    for index in 0..COUNT {
        writer.apply_watcher_event(&Event::InitApply(serde_json::from_value(stored(index))?));
    }
    writer.apply_watcher_event(&Event::InitDone);
    let typed = allocated::bytes() - before;
    drop(writer);

    let before = allocated::bytes();
    let dynamic: Vec<DynamicObject> =
        (0..COUNT).map(|i| serde_json::from_value(stored(i))).collect::<Result<_, _>>()?;
    let dynamic_bytes = allocated::bytes() - before;
    drop(dynamic);

    let json = serde_json::to_vec(&stored(1))?.len();
    table.row(
        "a cached object",
        format!("{} B", our_bytes / COUNT),
        "half of Store's",
        format!(
            "kube-runtime's Store {} B, ratio {:.2}; DynamicObject {} B; its JSON {json} B",
            typed / COUNT,
            our_bytes as f64 / typed as f64,
            dynamic_bytes / COUNT
        ),
    );
    Ok(())
}
