"""OpenTelemetry as an application sets it up: OTLP out, by the standard environment variables.

`OTEL_EXPORTER_OTLP_ENDPOINT` and `OTEL_EXPORTER_OTLP_PROTOCOL` (`grpc`, the default here, or
`http/protobuf`) say where spans go. `SPANS_FILE` also appends every exported batch to a file, one
OTLP/JSON export a line, which is what `mcp-verdict replay` reads.
"""
import base64
import json
import os
import uuid

from google.protobuf.json_format import MessageToDict
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

ID_FIELDS = ("traceId", "spanId", "parentSpanId")


def hex_ids(node):
    """OTLP/JSON writes ids in hex where protobuf's own JSON writes base64."""
    if isinstance(node, dict):
        return {k: base64.b64decode(v).hex() if k in ID_FIELDS else hex_ids(v) for k, v in node.items()}
    return [hex_ids(item) for item in node] if isinstance(node, list) else node


class FileExporter(SpanExporter):
    """Appends each batch as one line of OTLP/JSON."""

    def __init__(self, path):
        self.path = path

    def export(self, spans):
        batch = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
        with open(self.path, "a", encoding="utf-8") as out:
            out.write(json.dumps(hex_ids(batch)) + "\n")
        return SpanExportResult.SUCCESS


def otlp_exporter():
    if os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc") == "grpc":
        from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
    else:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    return OTLPSpanExporter()


def start(service):
    """A tracer provider that is flushed by `.shutdown()`; becomes the global one."""
    provider = TracerProvider(resource=Resource.create({
        "service.name": service, "service.instance.id": str(uuid.uuid4())}))
    exporters = [otlp_exporter()]
    if os.environ.get("SPANS_FILE"):
        exporters.append(FileExporter(os.environ["SPANS_FILE"]))
    for exporter in exporters:
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=500))
    trace.set_tracer_provider(provider)
    return provider
