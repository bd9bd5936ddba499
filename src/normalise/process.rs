//! Which process an OTLP resource stands for.

use std::sync::Arc;

use super::content;
use super::item::{Bag, json, text};
use crate::model::fact::Process;
use crate::model::ids::{Digest16, Name};

/// What tells a process from its twins, in order of preference.
const INSTANCE: &[&str] = &["service.instance.id", "process.pid"];

/// What narrows a process id down to one machine or container.
const PLACE: &[&str] = &["host.id", "host.name", "container.id", "k8s.pod.uid", "k8s.pod.name"];

/// The process of a resource: by service and instance or process id where there is one, else by
/// all attributes in any order (judgment.md §4.6).
pub fn process(resource: &Bag<'_>) -> Arc<Process> {
    let service = resource.text(&["service.name"]);
    let instance = INSTANCE.iter().find_map(|key| Some((key, resource.text(&[key])?)));
    let key = match &instance {
        Some((kind, id)) => {
            let namespace = resource.text(&["service.namespace"]).unwrap_or_default();
            let place = match **kind {
                "process.pid" => resource.text(PLACE).unwrap_or_default(),
                _ => "".into(),
            };
            let service = service.as_deref().unwrap_or_default();
            Digest16::of(&[
                b"instance",
                namespace.as_bytes(),
                service.as_bytes(),
                id.as_bytes(),
                place.as_bytes(),
            ])
        }
        None => whole(resource),
    };
    Arc::new(Process {
        key,
        service: service.as_deref().and_then(Name::some),
        distinct: instance.is_some(),
    })
}

fn whole(resource: &Bag<'_>) -> Digest16 {
    let mut members: Vec<Digest16> = resource
        .0
        .iter()
        .map(|(key, value)| {
            let value = match text(value) {
                Some(text) => text.into_owned(),
                None => json(value).map(|v| content::canonical(&v)).unwrap_or_default(),
            };
            Digest16::of(&[key.as_bytes(), value.as_bytes()])
        })
        .collect();
    members.sort();
    members.dedup();
    let parts: Vec<&[u8]> = members.iter().map(|digest| digest.0.as_slice()).collect();
    Digest16::of(&parts)
}
