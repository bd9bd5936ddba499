//! Regrouping: no item is lost, doubled, changed or moved to another origin.

use mcp_verdict::wire::regroup::{Part, concat, items, regroup, remove_items, split};
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use proptest::collection::vec;
use proptest::prelude::*;
use prost::Message;

use super::arbitrary::{logs, traces, unknown};

/// Every item of a traces export as (resource, scope, span), each encoded by the other reader.
fn spans(export: &[u8]) -> Vec<[Vec<u8>; 3]> {
    let export = ExportTraceServiceRequest::decode(export).expect("readable");
    let mut spans = Vec::new();
    for resource in export.resource_spans {
        for scope in resource.scope_spans {
            let origin = (resource.resource.clone().unwrap_or_default()).encode_to_vec();
            let origin = [origin, resource.schema_url.clone().into_bytes()].concat();
            let name = (scope.scope.clone().unwrap_or_default()).encode_to_vec();
            let name = [name, scope.schema_url.clone().into_bytes()].concat();
            spans.extend(
                scope.spans.iter().map(|s| [origin.clone(), name.clone(), s.encode_to_vec()]),
            );
        }
    }
    spans
}

fn sorted(mut spans: Vec<[Vec<u8>; 3]>) -> Vec<[Vec<u8>; 3]> {
    spans.sort();
    spans
}

/// Takes the items with these indices out into a request of their own.
fn taken(export: &[u8], take: impl Fn(usize) -> bool) -> Vec<u8> {
    let chosen: Vec<_> = items(export).filter(|item| take(item.index)).collect();
    let origins: Vec<_> =
        chosen.iter().map(|item| (item.resource.origin(), item.scope.origin())).collect();
    let parts: Vec<_> = chosen
        .iter()
        .zip(&origins)
        .map(|(item, (resource, scope))| Part { resource, scope, item: item.bytes })
        .collect();
    regroup(&parts)
}

proptest! {
    #[test]
    fn held_and_rest_are_the_whole(
        traces in traces(), behind in unknown(), held in vec(any::<bool>(), 40),
    ) {
        let export = [traces.encode_to_vec(), behind.clone()].concat();
        let rest = remove_items(&export, |index| held[index]);
        let out = taken(&export, |index| held[index]);
        let together = [spans(&rest), spans(&out)].concat();
        prop_assert_eq!(sorted(together), sorted(spans(&export)));
        prop_assert!(rest.ends_with(&behind), "unknown fields of the request stay");
        prop_assert_eq!(items(&export).count(), spans(&export).len());
    }

    #[test]
    fn nothing_held_is_every_byte_everything_held_is_no_item(
        traces in traces(), behind in unknown(),
    ) {
        let export = [traces.encode_to_vec(), behind].concat();
        prop_assert_eq!(&remove_items(&export, |_| false), &export);
        let rest = remove_items(&export, |_| true);
        prop_assert_eq!(items(&rest).count(), 0);
    }

    #[test]
    fn each_origin_is_written_once_and_sized_exactly(traces in traces()) {
        let export = taken(&traces.encode_to_vec(), |_| true);
        prop_assert_eq!(export.capacity(), export.len());
        let read = ExportTraceServiceRequest::decode(export.as_slice()).expect("readable");
        for (index, resource) in read.resource_spans.iter().enumerate() {
            let same = |other: &&_| -> bool {
                let other: &opentelemetry_proto::tonic::trace::v1::ResourceSpans = other;
                other.resource == resource.resource && other.schema_url == resource.schema_url
            };
            let twins = read.resource_spans[index + 1..].iter().filter(same).count();
            prop_assert_eq!(twins, 0);
        }
    }

    #[test]
    fn a_split_export_has_every_item_in_parts_within_the_limit(
        traces in traces(), behind in unknown(), max in 20usize..600,
    ) {
        let export = [traces.encode_to_vec(), behind].concat();
        let parts = split(&export, max);
        prop_assert!(parts.parts.iter().all(|part| part.len() <= max));
        let fits = |index: &usize| !parts.too_big.contains(index);
        let all = spans(&export);
        let kept: Vec<_> = (0..all.len()).filter(fits).map(|index| all[index].clone()).collect();
        let arrived: Vec<_> = parts.parts.iter().flat_map(|part| spans(part)).collect();
        prop_assert_eq!(sorted(arrived), sorted(kept));
    }

    #[test]
    fn an_item_is_too_big_only_if_it_is_so_alone(traces in traces(), max in 20usize..600) {
        let export = traces.encode_to_vec();
        let parts = split(&export, max);
        for index in 0..items(&export).count() {
            let alone = taken(&export, |other| other == index).len();
            let too_big = parts.too_big.contains(&index);
            prop_assert_eq!(too_big, alone > max && export.len() > max);
        }
    }

    #[test]
    fn concatenated_requests_are_one(first in logs(), second in logs()) {
        let bytes = concat(&[first.encode_to_vec(), second.encode_to_vec()]);
        let mut expected = first;
        expected.resource_logs.extend(second.resource_logs);
        let read = ExportLogsServiceRequest::decode(bytes.as_slice()).expect("readable");
        prop_assert_eq!(read, expected);
    }
}
