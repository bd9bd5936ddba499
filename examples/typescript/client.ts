// Calls the ticket desk (../python/server.py) once in each way that matters, and says what it saw, one
// JSON object a line:  node dist/client.js http://127.0.0.1:8000/mcp
// The MCP spans come from @traceloop/instrumentation-mcp, the HTTP spans from the one for undici.
import { provider } from "./telemetry.js";
import { trace } from "@opentelemetry/api";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

interface Step {
  step: string;
  tool: string;
  arguments: Record<string, unknown>;
  timeout?: number; // milliseconds
}

const STEPS: Step[] = [
  { step: "success", tool: "get_weather", arguments: { city: "Oslo" } },
  { step: "tool_error", tool: "divide", arguments: { a: 1, b: 0 } },
  { step: "unauthorized", tool: "payroll", arguments: {} },
  { step: "timeout", tool: "slow", arguments: { seconds: 2.5 }, timeout: 700 },
];

async function call(client: Client, { step, tool, arguments: args, timeout }: Step): Promise<void> {
  await trace.getTracer("ticket-desk-ts-agent").startActiveSpan("agent step " + step, async (span) => {
    const seen: Record<string, unknown> = { step, tool, trace_id: span.spanContext().traceId };
    try {
      const result = await client.callTool({ name: tool, arguments: args }, undefined, { timeout });
      Object.assign(seen, { answered: true, is_error: result.isError === true });
    } catch (error) {
      Object.assign(seen, { answered: false, code: (error as { code?: number }).code ?? null });
    }
    span.end();
    console.log(JSON.stringify(seen));
  });
}

async function main(): Promise<void> {
  const url = process.argv[2];
  if (!url) {
    throw new Error("usage: client.js URL, for example http://127.0.0.1:8000/mcp");
  }
  const client = new Client({ name: "ticket-desk-ts-agent", version: "1.0.0" });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  await client.listTools();
  for (const step of STEPS) {
    await call(client, step);
  }
  await new Promise((wake) => setTimeout(wake, 2000)); // the slow tool's server ends its span
  await client.close();
}

main()
  .catch((error) => {
    console.error(error);
    process.exitCode = 1;
  })
  .finally(() => provider.shutdown())
  .catch((error) => console.error("spans were not delivered:", error.message));
