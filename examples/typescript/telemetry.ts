// OpenTelemetry as an application sets it up: OTEL_EXPORTER_OTLP_ENDPOINT and
// OTEL_EXPORTER_OTLP_PROTOCOL ("grpc", the default here, or "http/protobuf") say where spans go.
// SPANS_FILE also appends every exported batch to a file, one OTLP/JSON export a line, which is what
// `mcp-verdict replay` reads.
import { randomUUID } from "node:crypto";
import { appendFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { ExportResult, ExportResultCode } from "@opentelemetry/core";
import { OTLPTraceExporter as GrpcExporter } from "@opentelemetry/exporter-trace-otlp-grpc";
import { OTLPTraceExporter as HttpExporter } from "@opentelemetry/exporter-trace-otlp-proto";
import { registerInstrumentations } from "@opentelemetry/instrumentation";
import { UndiciInstrumentation } from "@opentelemetry/instrumentation-undici";
import { JsonTraceSerializer } from "@opentelemetry/otlp-transformer";
import { resourceFromAttributes } from "@opentelemetry/resources";
import { BatchSpanProcessor, NodeTracerProvider, ReadableSpan, SpanExporter } from "@opentelemetry/sdk-trace-node";
import { McpInstrumentation } from "@traceloop/instrumentation-mcp";

class FileExporter implements SpanExporter {
  constructor(private readonly path: string) {}

  export(spans: ReadableSpan[], done: (result: ExportResult) => void): void {
    const line = Buffer.from(JsonTraceSerializer.serializeRequest(spans) ?? []).toString("utf8");
    appendFileSync(this.path, line + "\n");
    done({ code: ExportResultCode.SUCCESS });
  }

  async shutdown(): Promise<void> {}
}

const overGrpc = (process.env.OTEL_EXPORTER_OTLP_PROTOCOL ?? "grpc") === "grpc";
const exporters: SpanExporter[] = [overGrpc ? new GrpcExporter() : new HttpExporter()];
if (process.env.SPANS_FILE) {
  exporters.push(new FileExporter(process.env.SPANS_FILE));
}

export const provider = new NodeTracerProvider({
  resource: resourceFromAttributes({
    "service.name": "ticket-desk-ts-agent",
    "service.instance.id": randomUUID(),
  }),
  spanProcessors: exporters.map((exporter) => new BatchSpanProcessor(exporter, { scheduledDelayMillis: 500 })),
});
provider.register();
const mcp = new McpInstrumentation();
registerInstrumentations({ instrumentations: [mcp, new UndiciInstrumentation()] });
mcp.manuallyInstrument({ Client }); // the package's own way where its module hook finds nothing
