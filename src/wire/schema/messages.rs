//! Every message of OTLP: number, JSON name, kind and rule of its fields, in their order in JSON.

use super::{Field, Kind, Message, Role, Rule};

macro_rules! kind {
    (string) => {
        Kind::String
    };
    (bytes) => {
        Kind::Bytes
    };
    (trace_id) => {
        Kind::Id(16)
    };
    (span_id) => {
        Kind::Id(8)
    };
    (bool) => {
        Kind::Bool
    };
    (int32) => {
        Kind::Int32
    };
    (sint32) => {
        Kind::SInt32
    };
    (uint32) => {
        Kind::UInt32
    };
    (enumeration) => {
        Kind::Enum
    };
    (int64) => {
        Kind::Int64
    };
    (uint64) => {
        Kind::UInt64
    };
    (fixed32) => {
        Kind::Fixed32
    };
    (fixed64) => {
        Kind::Fixed64
    };
    (sfixed64) => {
        Kind::SFixed64
    };
    (double) => {
        Kind::Double
    };
    ($message:ident) => {
        Kind::Message(&$message)
    };
}

macro_rules! rule {
    () => {
        Rule::One
    };
    (repeated) => {
        Rule::Many
    };
    (optional) => {
        Rule::Optional
    };
    (oneof) => {
        Rule::OneOf
    };
}

macro_rules! messages {
    ($($role:ident $table:ident $name:literal {
        $($number:literal $json:literal $kind:ident $($rule:ident)?;)*
    })*) => { $(
        pub static $table: Message = Message::new($name, Role::$role, &[
            $(Field { number: $number, json: $json, kind: kind!($kind), rule: rule!($($rule)?) }),*
        ]);
    )* };
}

messages! {
    Plain TRACES_REQUEST "ExportTraceServiceRequest" {
        1 "resourceSpans" RESOURCE_SPANS repeated;
    }
    Plain LOGS_REQUEST "ExportLogsServiceRequest" {
        1 "resourceLogs" RESOURCE_LOGS repeated;
    }
    Plain METRICS_REQUEST "ExportMetricsServiceRequest" {
        1 "resourceMetrics" RESOURCE_METRICS repeated;
    }
    Plain PROFILES_REQUEST "ExportProfilesServiceRequest" {
        1 "resourceProfiles" RESOURCE_PROFILES repeated;
        2 "dictionary" PROFILES_DICTIONARY;
    }

    // -- common
    Plain ANY_VALUE "AnyValue" {
        1 "stringValue" string oneof;
        2 "boolValue" bool oneof;
        3 "intValue" int64 oneof;
        4 "doubleValue" double oneof;
        5 "arrayValue" ARRAY_VALUE oneof;
        6 "kvlistValue" KEY_VALUE_LIST oneof;
        7 "bytesValue" bytes oneof;
        8 "stringValueStrindex" int32 oneof;
    }
    List ARRAY_VALUE "ArrayValue" { 1 "values" ANY_VALUE repeated; }
    List KEY_VALUE_LIST "KeyValueList" { 1 "values" KEY_VALUE repeated; }
    Plain KEY_VALUE "KeyValue" {
        1 "key" string;
        2 "value" ANY_VALUE;
        3 "keyStrindex" int32;
    }
    Plain SCOPE "InstrumentationScope" {
        1 "name" string;
        2 "version" string;
        3 "attributes" KEY_VALUE repeated;
        4 "droppedAttributesCount" uint32;
    }
    Plain ENTITY_REF "EntityRef" {
        1 "schemaUrl" string;
        2 "type" string;
        3 "idKeys" string repeated;
        4 "descriptionKeys" string repeated;
    }
    Plain RESOURCE "Resource" {
        1 "attributes" KEY_VALUE repeated;
        2 "droppedAttributesCount" uint32;
        3 "entityRefs" ENTITY_REF repeated;
    }

    // -- traces
    Plain RESOURCE_SPANS "ResourceSpans" {
        1 "resource" RESOURCE;
        2 "scopeSpans" SCOPE_SPANS repeated;
        3 "schemaUrl" string;
    }
    Plain SCOPE_SPANS "ScopeSpans" {
        1 "scope" SCOPE;
        2 "spans" SPAN repeated;
        3 "schemaUrl" string;
    }
    Item SPAN "Span" {
        1 "traceId" trace_id;
        2 "spanId" span_id;
        3 "traceState" string;
        4 "parentSpanId" span_id;
        16 "flags" fixed32;
        5 "name" string;
        6 "kind" enumeration;
        7 "startTimeUnixNano" fixed64;
        8 "endTimeUnixNano" fixed64;
        9 "attributes" KEY_VALUE repeated;
        10 "droppedAttributesCount" uint32;
        11 "events" SPAN_EVENT repeated;
        12 "droppedEventsCount" uint32;
        13 "links" SPAN_LINK repeated;
        14 "droppedLinksCount" uint32;
        15 "status" STATUS;
    }
    Plain SPAN_EVENT "Span.Event" {
        1 "timeUnixNano" fixed64;
        2 "name" string;
        3 "attributes" KEY_VALUE repeated;
        4 "droppedAttributesCount" uint32;
    }
    Plain SPAN_LINK "Span.Link" {
        1 "traceId" trace_id;
        2 "spanId" span_id;
        3 "traceState" string;
        4 "attributes" KEY_VALUE repeated;
        5 "droppedAttributesCount" uint32;
        6 "flags" fixed32;
    }
    Plain STATUS "Status" {
        2 "message" string;
        3 "code" enumeration;
    }

    // -- logs
    Plain RESOURCE_LOGS "ResourceLogs" {
        1 "resource" RESOURCE;
        2 "scopeLogs" SCOPE_LOGS repeated;
        3 "schemaUrl" string;
    }
    Plain SCOPE_LOGS "ScopeLogs" {
        1 "scope" SCOPE;
        2 "logRecords" LOG_RECORD repeated;
        3 "schemaUrl" string;
    }
    Item LOG_RECORD "LogRecord" {
        1 "timeUnixNano" fixed64;
        11 "observedTimeUnixNano" fixed64;
        2 "severityNumber" enumeration;
        3 "severityText" string;
        5 "body" ANY_VALUE;
        6 "attributes" KEY_VALUE repeated;
        7 "droppedAttributesCount" uint32;
        8 "flags" fixed32;
        9 "traceId" trace_id;
        10 "spanId" span_id;
        12 "eventName" string;
    }

    // -- metrics
    Plain RESOURCE_METRICS "ResourceMetrics" {
        1 "resource" RESOURCE;
        2 "scopeMetrics" SCOPE_METRICS repeated;
        3 "schemaUrl" string;
    }
    Plain SCOPE_METRICS "ScopeMetrics" {
        1 "scope" SCOPE;
        2 "metrics" METRIC repeated;
        3 "schemaUrl" string;
    }
    Plain METRIC "Metric" {
        1 "name" string;
        2 "description" string;
        3 "unit" string;
        5 "gauge" GAUGE oneof;
        7 "sum" SUM oneof;
        9 "histogram" HISTOGRAM oneof;
        10 "exponentialHistogram" EXPONENTIAL_HISTOGRAM oneof;
        11 "summary" SUMMARY oneof;
        12 "metadata" KEY_VALUE repeated;
    }
    Plain GAUGE "Gauge" { 1 "dataPoints" NUMBER_POINT repeated; }
    Plain SUM "Sum" {
        1 "dataPoints" NUMBER_POINT repeated;
        2 "aggregationTemporality" enumeration;
        3 "isMonotonic" bool;
    }
    Plain HISTOGRAM "Histogram" {
        1 "dataPoints" HISTOGRAM_POINT repeated;
        2 "aggregationTemporality" enumeration;
    }
    Plain EXPONENTIAL_HISTOGRAM "ExponentialHistogram" {
        1 "dataPoints" EXPONENTIAL_POINT repeated;
        2 "aggregationTemporality" enumeration;
    }
    Plain SUMMARY "Summary" { 1 "dataPoints" SUMMARY_POINT repeated; }
    Item NUMBER_POINT "NumberDataPoint" {
        7 "attributes" KEY_VALUE repeated;
        2 "startTimeUnixNano" fixed64;
        3 "timeUnixNano" fixed64;
        4 "asDouble" double oneof;
        6 "asInt" sfixed64 oneof;
        5 "exemplars" EXEMPLAR repeated;
        8 "flags" uint32;
    }
    Item HISTOGRAM_POINT "HistogramDataPoint" {
        9 "attributes" KEY_VALUE repeated;
        2 "startTimeUnixNano" fixed64;
        3 "timeUnixNano" fixed64;
        4 "count" fixed64;
        5 "sum" double optional;
        6 "bucketCounts" fixed64 repeated;
        7 "explicitBounds" double repeated;
        8 "exemplars" EXEMPLAR repeated;
        10 "flags" uint32;
        11 "min" double optional;
        12 "max" double optional;
    }
    Item EXPONENTIAL_POINT "ExponentialHistogramDataPoint" {
        1 "attributes" KEY_VALUE repeated;
        2 "startTimeUnixNano" fixed64;
        3 "timeUnixNano" fixed64;
        4 "count" fixed64;
        5 "sum" double optional;
        6 "scale" sint32;
        7 "zeroCount" fixed64;
        8 "positive" BUCKETS;
        9 "negative" BUCKETS;
        10 "flags" uint32;
        11 "exemplars" EXEMPLAR repeated;
        12 "min" double optional;
        13 "max" double optional;
        14 "zeroThreshold" double;
    }
    Plain BUCKETS "ExponentialHistogramDataPoint.Buckets" {
        1 "offset" sint32;
        2 "bucketCounts" uint64 repeated;
    }
    Item SUMMARY_POINT "SummaryDataPoint" {
        7 "attributes" KEY_VALUE repeated;
        2 "startTimeUnixNano" fixed64;
        3 "timeUnixNano" fixed64;
        4 "count" fixed64;
        5 "sum" double;
        6 "quantileValues" VALUE_AT_QUANTILE repeated;
        8 "flags" uint32;
    }
    Plain VALUE_AT_QUANTILE "SummaryDataPoint.ValueAtQuantile" {
        1 "quantile" double;
        2 "value" double;
    }
    Plain EXEMPLAR "Exemplar" {
        7 "filteredAttributes" KEY_VALUE repeated;
        2 "timeUnixNano" fixed64;
        3 "asDouble" double oneof;
        6 "asInt" sfixed64 oneof;
        4 "spanId" span_id;
        5 "traceId" trace_id;
    }

    // -- profiles
    Plain RESOURCE_PROFILES "ResourceProfiles" {
        1 "resource" RESOURCE;
        2 "scopeProfiles" SCOPE_PROFILES repeated;
        3 "schemaUrl" string;
    }
    Plain SCOPE_PROFILES "ScopeProfiles" {
        1 "scope" SCOPE;
        2 "profiles" PROFILE repeated;
        3 "schemaUrl" string;
    }
    Plain PROFILE "Profile" {
        1 "sampleType" VALUE_TYPE;
        2 "samples" SAMPLE repeated;
        3 "timeUnixNano" fixed64;
        4 "durationNano" uint64;
        5 "periodType" VALUE_TYPE;
        6 "period" int64;
        7 "profileId" trace_id;
        8 "droppedAttributesCount" uint32;
        9 "originalPayloadFormat" string;
        10 "originalPayload" bytes;
        11 "attributeIndices" int32 repeated;
    }
    Plain VALUE_TYPE "ValueType" {
        1 "typeStrindex" int32;
        2 "unitStrindex" int32;
    }
    Item SAMPLE "Sample" {
        1 "stackIndex" int32;
        2 "attributeIndices" int32 repeated;
        3 "linkIndex" int32;
        4 "values" int64 repeated;
        5 "timestampsUnixNano" fixed64 repeated;
    }
    Plain PROFILES_DICTIONARY "ProfilesDictionary" {
        1 "mappingTable" MAPPING repeated;
        2 "locationTable" LOCATION repeated;
        3 "functionTable" FUNCTION repeated;
        4 "linkTable" PROFILE_LINK repeated;
        5 "stringTable" string repeated;
        6 "attributeTable" KEY_VALUE_AND_UNIT repeated;
        7 "stackTable" STACK repeated;
    }
    Plain PROFILE_LINK "Link" {
        1 "traceId" trace_id;
        2 "spanId" span_id;
    }
    Plain MAPPING "Mapping" {
        1 "memoryStart" uint64;
        2 "memoryLimit" uint64;
        3 "fileOffset" uint64;
        4 "filenameStrindex" int32;
        5 "attributeIndices" int32 repeated;
    }
    Plain STACK "Stack" { 1 "locationIndices" int32 repeated; }
    Plain LOCATION "Location" {
        1 "mappingIndex" int32;
        2 "address" uint64;
        3 "lines" LINE repeated;
        4 "attributeIndices" int32 repeated;
    }
    Plain LINE "Line" {
        1 "functionIndex" int32;
        2 "line" int64;
        3 "column" int64;
    }
    Plain FUNCTION "Function" {
        1 "nameStrindex" int32;
        2 "systemNameStrindex" int32;
        3 "filenameStrindex" int32;
        4 "startLine" int64;
    }
    Plain KEY_VALUE_AND_UNIT "KeyValueAndUnit" {
        1 "keyStrindex" int32;
        2 "value" ANY_VALUE;
        3 "unitStrindex" int32;
    }
}
