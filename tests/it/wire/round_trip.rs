//! JSON and protobuf name the same message, by the independent reader's word in both forms.

use mcp_verdict::wire::Signal;
use mcp_verdict::wire::json::{Limits, from_protobuf, to_protobuf};
use mcp_verdict::wire::scan::check;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::profiles::v1development::ExportProfilesServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use proptest::prelude::*;
use prost::Message;

use super::arbitrary::{logs, metrics, traces, unknown};

const LIMITS: Limits = Limits { max_bytes: 1 << 24 };

fn back(signal: Signal, json: &[u8]) -> Vec<u8> {
    let converted = to_protobuf(signal, json, LIMITS).expect("what we write, we read");
    assert_eq!(converted.rejected, 0);
    check(signal, &converted.bytes).expect("what we write is readable protobuf");
    converted.bytes
}

proptest! {
    #[test]
    fn traces_and_their_json(export in traces(), behind in unknown()) {
        let bytes = [export.encode_to_vec(), behind].concat();
        prop_assert!(check(Signal::Traces, &bytes).is_ok());
        let json = from_protobuf(Signal::Traces, &bytes);
        let ours = back(Signal::Traces, &json);
        prop_assert_eq!(&ExportTraceServiceRequest::decode(&ours[..]).expect("readable"), &export);
        let theirs: ExportTraceServiceRequest = serde_json::from_slice(&json).expect("JSON");
        prop_assert_eq!(&theirs, &export);
        let ours = back(Signal::Traces, &serde_json::to_vec(&export).expect("JSON"));
        prop_assert_eq!(&ExportTraceServiceRequest::decode(&ours[..]).expect("readable"), &export);
    }

    #[test]
    fn logs_and_their_json(export in logs()) {
        let json = from_protobuf(Signal::Logs, &export.encode_to_vec());
        let ours = back(Signal::Logs, &json);
        prop_assert_eq!(&ExportLogsServiceRequest::decode(&ours[..]).expect("readable"), &export);
        let theirs: ExportLogsServiceRequest = serde_json::from_slice(&json).expect("JSON");
        prop_assert_eq!(&theirs, &export);
        let ours = back(Signal::Logs, &serde_json::to_vec(&export).expect("JSON"));
        prop_assert_eq!(&ExportLogsServiceRequest::decode(&ours[..]).expect("readable"), &export);
    }

    #[test]
    fn metrics_and_their_json(export in metrics()) {
        let bytes = export.encode_to_vec();
        prop_assert!(check(Signal::Metrics, &bytes).is_ok());
        let json = from_protobuf(Signal::Metrics, &bytes);
        let ours = back(Signal::Metrics, &json);
        prop_assert_eq!(ExportMetricsServiceRequest::decode(&ours[..]).expect("readable"), export);
    }
}

#[test]
fn every_field_of_a_profile_is_known() {
    let json = r#"{"resourceProfiles":[{"resource":{"attributes":[{"value":{"boolValue":true},
        "keyStrindex":3}],"entityRefs":[{"schemaUrl":"u","type":"t","idKeys":["a","b"],
        "descriptionKeys":["d"]}]},"scopeProfiles":[{"scope":{"name":"s"},"profiles":[{
        "sampleType":{"typeStrindex":1,"unitStrindex":2},"samples":[{"stackIndex":1,
        "attributeIndices":[1,2],"linkIndex":1,"values":["-1","9007199254740993"],
        "timestampsUnixNano":["1","2"]}],"timeUnixNano":"5","durationNano":"6",
        "periodType":{"typeStrindex":3},"period":"-7",
        "profileId":"000102030405060708090a0b0c0d0e0f","droppedAttributesCount":8,
        "originalPayloadFormat":"pprof","originalPayload":"AAH/","attributeIndices":[4]}]}]}],
        "dictionary":{"mappingTable":[{"memoryStart":"1","memoryLimit":"2","fileOffset":"3",
        "filenameStrindex":4,"attributeIndices":[5]}],"locationTable":[{"mappingIndex":1,
        "address":"2","lines":[{"functionIndex":1,"line":"2","column":"3"}],
        "attributeIndices":[4]}],"functionTable":[{"nameStrindex":1,"systemNameStrindex":2,
        "filenameStrindex":3,"startLine":"4"}],"linkTable":[{
        "traceId":"000102030405060708090a0b0c0d0e0f","spanId":"0001020304050607"}],
        "stringTable":["","x"],"attributeTable":[{"keyStrindex":1,"value":{"intValue":"1"},
        "unitStrindex":2}],"stackTable":[{"locationIndices":[1,2]}]}}"#;
    let bytes = back(Signal::Profiles, json.as_bytes());
    assert_eq!(check(Signal::Profiles, &bytes).map(|counts| counts.items), Ok(1));
    let read = ExportProfilesServiceRequest::decode(bytes.as_slice()).expect("readable");
    // The other writer packs and orders in its own way: equal messages, not equal bytes.
    let written = read.encode_to_vec();
    let compact: String = json.split_ascii_whitespace().collect();
    assert_eq!(String::from_utf8(from_protobuf(Signal::Profiles, &written)), Ok(compact));
}

#[test]
fn halves_of_a_message_are_merged_and_the_last_member_of_a_oneof_wins() {
    use mcp_verdict::wire::fields::{put_bytes_field, put_varint_field};
    let field = |number, body: &[u8]| {
        let mut out = Vec::new();
        put_bytes_field(&mut out, number, body);
        out
    };
    let mut status = Vec::new();
    put_varint_field(&mut status, 3, 2);
    let mut value = field(1, b"text");
    put_varint_field(&mut value, 3, 7);
    let attribute = field(9, &[field(1, b"k"), field(2, &value)].concat());
    let span = [field(15, &status), attribute, field(15, &field(2, b"why"))].concat();
    let json = from_protobuf(Signal::Traces, &field(1, &field(2, &field(2, &span))));
    let expected = concat!(
        r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"k","value":"#,
        r#"{"intValue":"7"}}],"status":{"message":"why","code":2}}]}]}]}"#
    );
    assert_eq!(String::from_utf8(json).as_deref(), Ok(expected));
}
