#!/usr/bin/env python3
"""Black-box rows of what a correct OTLP edge does, against a running OTLP-in/OTLP-out process.

  python3 -m venv VENV && VENV/bin/pip install grpcio opentelemetry-proto protobuf zstandard h2
  VENV/bin/python edge_check.py --bin PATH [--kind mcp-verdict|collector] [--only SUBSTR] [--list]

Each row says what it sends and what is right. The last line reads "N passed, M failed, K skipped"; exit 0 without a failure.
mcp-verdict must forward the very bytes of a span; a Collector (the peer) only the fields of the published schema.
Rows that need their own process run beside the others: half a minute for a sound target, four minutes at most.
The wire half of the library is edgewire.py, the rows about the way out are in edge_export_rows.py.
"""
import base64, concurrent.futures, contextlib, gzip, json, os, re, socket, ssl, subprocess, time

import zstandard

from edgekit import *
from edgewire import zeros_gzip, without_verdict, nested

zstd = zstandard.ZstdCompressor().compress


# ---------------------------------------------------------------- receiver: the four signals, two wires, three codings

LOG = lambda m: field(1, now(), 1) + field(2, 9) + field(5, any_value("body")) + field(9, m) + field(12, "edge.event")
METRIC = lambda m: field(1, "edge." + m.hex()) + field(7, field(1, field(3, now(), 1) + field(6, 7, 1)) + field(2, 2) + field(3, 1))
PROFILE = lambda m: (field(1, field(1, 1)) + field(2, field(4, b"\x01")) + field(3, now(), 1) + field(4, 10**9) + field(5, field(1, 1))
                     + field(7, m))
DICTIONARY = field(2, b"".join(field(n, b"") for n in (1, 2, 3, 4, 5)) + field(5, "cpu") + field(6, b"") + field(7, b""))
ITEMS = {"traces": span, "logs": LOG, "metrics": METRIC, "profiles": PROFILE}


def signal_once(x, name, make, wire, coding, squeeze):
    mark = new_trace()
    body = export(make(mark), tail=DICTIONARY if name == "profiles" else b"")
    if wire == "http":
        a = post(x.t.http, squeeze(body), SIGNALS[name].path, coding=None if coding == "identity" else coding)
    else:
        data = frame(squeeze(body), int(coding != "identity"))
        a = grpc_raw(x.t.grpc, data, [("grpc-encoding", coding)], path=SIGNALS[name].method)
    need(a.ok, str(a))
    got = x.sink.wait(mark.hex().encode() if name == "metrics" else mark, 1, 3, name)
    need(got, "not forwarded")
    whole(x, body, got[0], name)


def signal_row(name, make):
    @row("%s over gRPC and HTTP, plain, gzip and zstd" % name, "one %s export a combination" % name,
         "200/OK each, the item arrives with nothing changed")
    def run(x):
        bad = []
        for wire in ("grpc", "http"):
            for coding, squeeze in (("identity", bytes), ("gzip", gzip.compress), ("zstd", zstd)):
                try:
                    signal_once(x, name, make, wire, coding, squeeze)
                except Fail as e:
                    bad.append("%s %s: %s" % (wire, coding, e))
        need(not bad, "; ".join(bad))


for _name, _make in ITEMS.items():
    signal_row(_name, _make)


@row("requests in flight on one connection", "64 gRPC exports at once on one channel, 20 HTTP exports on one connection",
     "all succeed, all spans arrive")
def in_flight(x):
    mark = new_trace()
    with channel(x.t.grpc) as over, concurrent.futures.ThreadPoolExecutor(16) as pool:
        done = list(pool.map(lambda i: call(x.t.grpc, one(mark), over=over), range(64)))
    need(all(a.ok for a in done), "gRPC: %s" % next((a for a in done if not a.ok), ""))
    got = exchange(x.t.http, http_request(one(mark)) * 20, answers=20)
    need([a.code for a in got] == [200] * 20, "HTTP pipeline answered %s" % [a.code for a in got])
    need(len(x.sink.wait(mark, 84)) == 84, "%d of 84 arrived" % len(x.sink.find(mark)))


@row("keep-alive", "two HTTP exports 2 s apart on one connection; an idle gRPC connection sends a PING",
     "second answer on the same connection; PING acknowledged")
def keep_alive(x):
    def paced():
        yield http_request(one(new_trace()))
        time.sleep(2)
        yield http_request(one(new_trace()))
    need([a.code for a in exchange(x.t.http, paced(), 2)] == [200, 200], "connection not kept")
    with H2(x.t.grpc) as c:
        c.conn.ping(b"edgeping")
        c.flush()
        while not any(type(e).__name__ == "PingAckReceived" for e in c.events):
            need(c.pump(), "no PING ack")


# ---------------------------------------------------------------- receiver: HTTP manners

@row("answer in the request's encoding", "a protobuf and a JSON export", "same content type back; `{}` or a JSON object for JSON")
def same_encoding(x):
    a, b = post(x.t.http, one(new_trace())), post(x.t.http, jexport(jspan(new_trace())), ctype=JSON)
    need(a.headers.get("content-type", "").startswith(PB), "protobuf answered as %s" % a.headers.get("content-type"))
    need(b.headers.get("content-type", "").startswith(JSON), "JSON answered as %s" % b.headers.get("content-type"))
    need(isinstance(json.loads(b.body), dict), "JSON answer is %r" % b.body)


@row("media type with parameters", "`application/json; charset=utf-8`, `;v=1`, `Application/JSON`, `application/x-protobuf;a=b`",
     "all 200")
def media_types(x):
    for ctype in ("application/json; charset=utf-8", "application/json;v=1", "Application/JSON"):
        a = post(x.t.http, jexport(jspan(new_trace())), ctype=ctype)
        need(a.ok, "%s: %s" % (ctype, a))
    a = post(x.t.http, one(new_trace()), ctype=PB + ";a=b")
    need(a.ok, "protobuf with a parameter: %s" % a)


REFUSALS = [("other media type is 415", dict(ctype="text/plain"), {415}), ("wrong method is 405", dict(method="PUT"), {405}),
            ("GET is 405", dict(method="GET"), {405}), ("unknown path is 404", dict(path="/v1/nothing"), {404}),
            ("protobuf that is none is 400", dict(body=b"\xff\xff\xff"), {400}),
            ("JSON that is none is 400", dict(body=b'{"resourceSpans": [', ctype=JSON), {400})]


def as_status(a):
    """The google.rpc.Status message text, from protobuf or JSON."""
    if a.headers.get("content-type", "").startswith(JSON):
        return str(json.loads(a.body).get("message", ""))
    if a.headers.get("content-type", "").startswith(PB):
        return dict((n, v) for n, v, _ in walk(a.body)).get(2, b"").decode()
    return ""


for _title, _how, _codes in REFUSALS:
    @row("refusal: " + _title, str(_how), "status %s" % sorted(_codes))
    def refusal(x, how=_how, codes=_codes):
        a = post(x.t.http, **{"body": one(new_trace()), **how})
        need(a.code in codes, str(a))
        return a.text[:80]


@row("refusals are a readable google.rpc.Status", "the six refused requests above",
     "body is a Status in protobuf or JSON with a message")
def readable(x):
    bad = []
    for title, how, _ in REFUSALS:
        a = post(x.t.http, **{"body": one(new_trace()), **how})
        with contextlib.suppress(ValueError, IndexError):
            if as_status(a):
                continue
        bad.append("%s: %s %.40r" % (title, a.headers.get("content-type"), a.body))
    need(not bad, "; ".join(bad))


# ---------------------------------------------------------------- receiver: OTLP/JSON

@row("json: hex ids of either case", "trace id in lower and in upper hex", "one and the same id arrives twice")
def hex_case(x):
    mark = new_trace()
    upper = jspan(mark, traceId=mark.hex().upper(), spanId="ABCDEF0123456789", parentSpanId="")
    return x.feed(jexport(jspan(mark), upper), mark, "accept", 2, wires=["http"], ctype=JSON)


@row("json: base64 ids are refused", "a trace id as 24 characters of base64",
     "400, or the span counted in partialSuccess; never another id")
def base64_id(x):
    name = "b64-" + os.urandom(6).hex()
    a = post(x.t.http, jexport(jspan(new_trace(), name=name, traceId="W47/95gDgQPSabYzgT/GDA==")), ctype=JSON)
    need(a.code == 400 or a.ok and b"rejectedSpans" in a.body, str(a))
    need(not x.sink.wait(name.encode(), 1, 0.5), "forwarded with some id")
    return str(a)


@row("json: enum names", '"kind":"SPAN_KIND_SERVER" with "status":{"code":"STATUS_CODE_ERROR"}, then "SERVER" and "ERROR"',
     "400 whose message speaks of the enum, or the same meaning arrives; never 200 with the value lost")
def enum_names(x):
    for kind, code in (("SPAN_KIND_SERVER", "STATUS_CODE_ERROR"), ("SERVER", "ERROR")):
        mark = new_trace()
        a = post(x.t.http, jexport(jspan(mark, kind=kind, status={"code": code})), ctype=JSON)
        if a.ok:
            s = SIGNALS["traces"].item.FromString(without_verdict(x.sink.wait(mark)[0].raw))
            need((s.kind, s.status.code) == (2, 2), "200, then kind %d, status %d" % (s.kind, s.status.code))
        else:
            need(a.code == 400 and re.search("enum|kind|code|integer|number", a.text.lower()), str(a))
    return str(a)


@row("json: int64 forms", 'intValue "25", 25, "9007199254740993"; times as string and as number', "exact values, exact times")
def int64_forms(x):
    mark, big = new_trace(), 9007199254740993
    values = [{"intValue": "25"}, {"intValue": 25}, {"intValue": str(big)}, {"intValue": big}, {"intValue": "-9223372036854775808"}]
    attrs = [{"key": "k%d" % i, "value": v} for i, v in enumerate(values)]
    start = 1795996800000000001
    body = jexport(jspan(mark, attributes=attrs, startTimeUnixNano=start, endTimeUnixNano=str(start + 3)))
    x.feed(body, mark, wires=["http"], ctype=JSON)
    got = SIGNALS["traces"].item.FromString(without_verdict(x.sink.find(mark)[0].raw))
    need([a.value.int_value for a in got.attributes][:5] == [25, 25, big, big, -1 << 63], "values became %s" % got.attributes)
    need((got.start_time_unix_nano, got.end_time_unix_nano) == (start, start + 3), "times became %s" % got.start_time_unix_nano)


@row("json: unknown keys at every level", "an extra key in request, resource, scope, span, event, status and AnyValue",
     "200, extras ignored, the span arrives")
def unknown_keys(x):
    mark, more = new_trace(), {"extra": {"a": [1, {"b": None}]}}
    value = {"stringValue": "v", **more}
    s = jspan(mark, **more, attributes=[{"key": "k", "value": value, **more}], status={"code": 2, **more},
              events=[{"name": "e", "timeUnixNano": "1", **more}], links=[{"traceId": mark.hex(), "spanId": "ab" * 8, **more}])
    doc = json.loads(jexport(s, **more))
    doc["resourceSpans"][0].update(more)
    doc["resourceSpans"][0]["resource"].update(more)
    doc["resourceSpans"][0]["scopeSpans"][0]["scope"].update(more)
    return x.feed(json.dumps(doc).encode(), mark, wires=["http"], ctype=JSON)


@row("json: null where a field may be absent", "null for strings, lists, messages and numbers", "200, the span arrives")
def nulls(x):
    mark = new_trace()
    s = jspan(mark, parentSpanId=None, traceState=None, attributes=None, events=None, links=None, status=None, flags=None,
              droppedAttributesCount=None)
    return x.feed(jexport(s, resource={"attributes": None}), mark, wires=["http"], ctype=JSON)


def ids(item):
    """The id and times of a forwarded span, for building what it should be."""
    s = SIGNALS["traces"].item.FromString(item.raw)
    return dict(sid=s.span_id, start=s.start_time_unix_nano, end=s.end_time_unix_nano)


@row("json: bytes in base64, doubles, nested values", "bytesValue, doubleValue, arrayValue, kvlistValue, boolValue",
     "the same values arrive")
def json_values(x):
    mark = new_trace()
    values = {"b": {"bytesValue": "AAH/"}, "d": {"doubleValue": 0.5}, "t": {"boolValue": True},
              "a": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "x"}]}},
              "m": {"kvlistValue": {"values": [{"key": "z", "value": {"intValue": 2}}]}}}
    x.feed(jexport(jspan(mark, attributes=[{"key": k, "value": v} for k, v in values.items()])), mark, wires=["http"], ctype=JSON)
    want = {"b": b"\0\1\xff", "d": 0.5, "t": True, "a": [1, "x"], "m": {"z": 2}}
    same("collector", Item(b"", b"", span(mark, attrs=want, **ids(x.sink.find(mark)[0]))), Item(b"", b"", x.sink.find(mark)[0].raw))


@row("omitted default field", "JSON batch of two MCP spans, one without kind and status",
     "both arrive, or the loss is in partialSuccess")
def omitted(x):
    mark = new_trace()
    attrs = [{"key": k, "value": {"stringValue": v}} for k, v in (("mcp.method.name", "tools/call"), ("jsonrpc.request.id", "1"))]
    a = post(x.t.http, jexport(jspan(mark, attributes=attrs), jspan(mark, attributes=attrs, kind=..., name="bare")), ctype=JSON)
    got = x.sink.wait(mark, 2)
    need(a.ok and (len(got) == 2 or b"rejectedSpans" in a.body), "%s, %d of 2 arrived" % (a, len(got)))


# ---------------------------------------------------------------- receiver: empty, bad, odd

@row("empty exports succeed", "no bytes on both wires; `{}`; an empty resourceSpans", "200/OK")
def empty(x):
    for a in (post(x.t.http, b""), call(x.t.grpc, b""), post(x.t.http, b"{}", ctype=JSON),
              post(x.t.http, b'{"resourceSpans":[]}', ctype=JSON), post(x.t.http, field(1, b""))):
        need(a.ok, str(a))


@row("bad protobuf on gRPC is INVALID_ARGUMENT", "three bytes of 0xff; a span cut in the middle",
     "INVALID_ARGUMENT with a reason")
def bad_grpc(x):
    for body in (b"\xff\xff\xff", one(new_trace())[:-9]):
        a = call(x.t.grpc, body)
        need(a.code == "INVALID_ARGUMENT" and a.text, str(a))


@row("one bad item never loses its neighbours", "nine good spans and one whose trace id has 3 bytes",
     "the nine arrive; the tenth too, or it is counted in partial_success")
def neighbours(x):
    for wire in ("http", "grpc"):
        mark = new_trace()
        body = export(*[span(mark) for _ in range(4)], span(b"\1\2\3"), *[span(mark) for _ in range(5)])
        a = post(x.t.http, body) if wire == "http" else call(x.t.grpc, body)
        need(len(x.sink.wait(mark, 9, 2)) == 9, "%s: %d of 9 arrived; %s" % (wire, len(x.sink.find(mark)), a))


def odd_row(name, sends, make, right="accepted on both wires, forwarded unchanged"):
    @row("odd but readable: " + name, sends, right)
    def run(x):
        mark = new_trace()
        spans = make(mark)
        body = export(*spans)
        return x.feed(body, mark, "accept", len(spans), list(items(body)))


odd_row("duplicate keys", "8 spans, 4 repeat app.mode=x, one repeats mcp.session.id with another value",
        lambda m: [span(m, attrs=[("app.mode", "x")] * 2) for _ in range(4)] + [span(m) for _ in range(3)]
        + [span(m, attrs=[("mcp.session.id", "s1"), ("mcp.session.id", "s2")])])
odd_row("end before start", "end = start - 1 ns; end = 0; start = 0", lambda m: [
    mcp_span(m, "1", start=now(), end=now() - 10**9), mcp_span(m, "2", start=now(), end=0), span(m, start=0, end=0)])
odd_row("far times", "start and end at 2^64-1, at 1 ns, and in the year 2200", lambda m: [
    span(m, start=2**64 - 1, end=2**64 - 1), span(m, start=1, end=2), mcp_span(m, start=7258118400 * 10**9, end=7258118401 * 10**9)])
odd_row("zero ids", "an all-zero span id, an all-zero and an empty trace id", lambda m: [
    span(m, sid=bytes(8)), span(bytes(16), attrs={"mark": m}), span(b"", attrs={"mark": m})])
odd_row("absent kind", "spans without kind and without status", lambda m: [span(m, kind=None), mcp_span(m, kind=None)])


@row("odd but readable: invalid UTF-8", "5 spans, one with a string attribute that ends in the middle of a character",
     "all 5 arrive with those very bytes (Collector: all 5 arrive)")
def bad_utf8(x):
    for wire in ("http", "grpc"):
        mark, bad = new_trace(), field(9, field(1, "cut") + field(2, field(1, b"caf\xe4\xbd")))
        body = export(*[span(mark) for _ in range(4)], span(mark, extra=bad))
        a = post(x.t.http, body) if wire == "http" else call(x.t.grpc, body)
        got = x.sink.wait(mark, 5, 3)
        need(a.ok and len(got) == 5, "%s: %s, %d of 5 arrived" % (wire, a, len(got)))
        need(x.kind == "collector" or any(bad in i.raw for i in got), "%s: value changed" % wire)


@row("unknown protobuf fields survive",
     "an unknown field in resource, scope, span, event, link, status and attribute of a plain and of an MCP span",
     "every one arrives (stated promise of mcp-verdict)")
def unknown_fields(x):
    mark, lost = new_trace(), []
    tags = {k: ("unknown-in-" + k).encode() for k in ("resource", "scope", "span", "event", "link", "status", "attribute", "mcp")}
    at = lambda k: field(2000, tags[k])
    inner = field(11, field(2, "e") + at("event")) + field(13, field(1, mark) + field(2, b"8bytes..") + at("link"))
    inner += field(15, field(3, 2) + at("status")) + field(9, kv("k", "v") + at("attribute")) + at("span")
    body = export(span(mark, extra=inner), mcp_span(mark, extra=at("mcp")), resource=RESOURCE + at("resource"), scope=SCOPE + at("scope"))
    need(post(x.t.http, body).ok and len(x.sink.wait(mark, 2)) == 2, "not forwarded")
    out = b"".join(i.resource + i.scope + i.raw for i in x.sink.find(mark))
    lost = [k for k, v in tags.items() if v not in out]
    need(not lost, "lost in: " + ", ".join(lost))


# ---------------------------------------------------------------- receiver: limits

@row("over-size request", "17 MiB on both wires against a limit of 16 MiB",
     "413 and RESOURCE_EXHAUSTED, the text names the limit, the next request is served")
def over_size(x):
    body = one(new_trace(), attrs={"big": "x" * (17 * MIB)})
    a, b = post(x.t.http, body, timeout=10), call(x.t.grpc, body, timeout=10)
    need(b.code == "RESOURCE_EXHAUSTED", "gRPC: %s" % b)
    need(a.code == 413, "HTTP: %s" % a)
    for said in (a.text, b.text):
        need(any(n in said for n in ("16777216", "16 MiB", "16MiB", "16.0 MiB", "16.00")), "limit not named: %s" % said)


@row("size limit is a setting", "1.5 MiB against a limit of 1 MiB, then 0.9 MiB, on both wires",
     "413 and RESOURCE_EXHAUSTED, then served", own=True)
def size_setting(x):
    t, _ = x.start(limit=MIB)
    for size in (MIB * 3 // 2, MIB * 9 // 10):
        body = one(new_trace(), attrs={"big": "x" * size})
        for a in (post(t.http, body), call(t.grpc, body)):
            need(a.ok if size < MIB else a.refused, "%d bytes: %s" % (size, a))


def bomb_row(name, coding, squeeze):
    @row("inflated size is capped: " + name, "256 MiB of zeros compressed to about 1/1000, on both wires",
         "refused, memory within 64 MiB of before")
    def run(x):
        blob = squeeze(MIB * 256)
        with x.t.flat(64):
            a = post(x.t.http, blob, coding=coding, timeout=15)
            b = grpc_raw(x.t.grpc, frame(blob, 1), [("grpc-encoding", coding)], timeout=15)
            need(a.refused, "HTTP: %s" % a)
            need(b.refused, "gRPC: %s" % b)
        return "%s; %s" % (a, b)


bomb_row("gzip", "gzip", zeros_gzip)
bomb_row("zstd", "zstd", lambda n: zstd(bytes(n)))


@row("deep nesting: control", "an attribute of arrays 20 deep, protobuf and JSON", "accepted and unchanged")
def shallow(x):
    mark = new_trace()
    deep = field(9, field(1, "deep") + field(2, nested(20)))
    body = one(mark, extra=deep)
    x.feed(body, mark, sent=list(items(body)))
    mark, value = new_trace(), {"stringValue": ""}
    for _ in range(20):
        value = {"arrayValue": {"values": [value]}}
    x.feed(jexport(jspan(mark, attributes=[{"key": "deep", "value": value}])), mark, wires=["http"], ctype=JSON)
    got = x.sink.find(mark)[0]
    same("collector", Item(b"", b"", span(mark, extra=deep, **ids(got))), Item(b"", b"", got.raw))


@row("deep nesting: protobuf", "an attribute of arrays 200 000 deep on both wires",
     "400 / INVALID_ARGUMENT-like refusal, alive, memory flat", limit=30)
def deep_protobuf(x):
    mark = new_trace()
    with x.t.flat(128):
        return x.feed(one(mark, extra=field(9, field(1, "deep") + field(2, nested(200_000)))), mark, "refuse")


@row("deep nesting: JSON", "an arrayValue nested 200 000 deep", "400, alive, memory flat", limit=30)
def deep_json(x):
    mark, n = new_trace(), 200_000
    value = '{"arrayValue":{"values":[' * n + ']}}' * n
    body = jexport(jspan(mark, attributes=[{"key": "deep", "value": "@"}])).replace(b'"@"', value.encode())
    with x.t.flat(128):
        return x.feed(body, mark, "refuse", wires=["http"], ctype=JSON)


@row("silent clients hold no memory", "60 HTTP and 60 gRPC clients announce 15 MiB, send 100 bytes, wait 2 s",
     "memory within 64 MiB, other clients served meanwhile")
def silent(x):
    with x.t.flat(64), contextlib.ExitStack() as stack:
        for _ in range(60):
            s = stack.enter_context(socket.create_connection(("127.0.0.1", x.t.http)))
            s.sendall(http_request(bytes(100), length=15 * MIB))
            c = stack.enter_context(H2(x.t.grpc))
            c.send(c.open(), frame(bytes(100), length=15 * MIB), end=False)
        x.serves()
        time.sleep(2)


# ---------------------------------------------------------------- receiver: security

def client_tls(ca, pair=None):
    context = ssl.create_default_context(cafile=ca)
    if pair:
        context.load_cert_chain(*pair)
    return context


def credentials(ca, pair=None):
    read = lambda path: open(path, "rb").read()
    return grpc.ssl_channel_credentials(read(ca), *((read(pair[1]), read(pair[0])) if pair else (None, None)))


@row("TLS and mutual TLS", "a client with a known certificate, one with none, one in plain text, on both wires",
     "only the first is served", own=True)
def mutual_tls(x):
    d = x.folder()
    server, client = certificate(d, "server"), certificate(d, "client")
    t, sink = x.start(tls={"cert_file": server[0], "key_file": server[1], "client_ca_file": client[0]})
    mark = new_trace()
    a = post(t.http, one(mark), tls=client_tls(server[0], client))
    b = call(t.grpc, one(mark), credentials=credentials(server[0], client))
    need(a.ok and b.ok and len(sink.wait(mark, 2)) == 2, "known client: %s; %s" % (a, b))
    with contextlib.suppress(OSError):
        a = post(t.http, one(mark), tls=client_tls(server[0]))
        need(not a.ok, "HTTP served a client without certificate")
    stranger = call(t.grpc, one(mark), credentials=credentials(server[0]), timeout=3)
    for b in (stranger, call(t.grpc, one(mark), timeout=3), post(t.http, one(mark))):
        need(not b.ok, "served: %s" % b)


@row("certificates reload without restart", "the certificate files are replaced, reload_interval 1 s",
     "a new handshake shows the new certificate within 10 s", own=True)
def tls_reload(x):
    d = x.folder()
    old, new = certificate(d, "old"), certificate(d, "new")
    t, sink = x.start(tls={"cert_file": old[0], "key_file": old[1], "reload_interval": "1s"})
    need(post(t.http, one(new_trace()), tls=client_tls(old[0])).ok, "TLS does not work at all")
    os.replace(new[1], old[1])
    os.replace(new[0], old[0])
    end = time.time() + 10
    while time.time() < end:
        time.sleep(0.5)
        with contextlib.suppress(OSError):
            if post(t.http, one(new_trace()), tls=client_tls(old[0])).ok:
                need(call(t.grpc, one(new_trace()), credentials=credentials(old[0])).ok, "gRPC still shows the old one")
                return
    raise Fail("still the old certificate")


def authentication(x, auth, right, wrong):
    t, _ = x.start(auth=auth)
    for value, want in ((right, (200, "OK")), (wrong, (401, "UNAUTHENTICATED")), (None, (401, "UNAUTHENTICATED"))):
        head = [("authorization", value)] if value else []
        a, b = post(t.http, one(new_trace()), headers=head), call(t.grpc, one(new_trace()), metadata=head)
        need((a.code, b.code) == want, "with %s: %s; %s" % (value, a, b))


@row("bearer token", "exports with the right token, a wrong one and none, on both wires", "served; twice 401/UNAUTHENTICATED",
     own=True, only="mcp-verdict")
def bearer(x):
    path = os.path.join(x.folder(), "token")
    with open(path, "w") as f:
        f.write("sesame\n")
    authentication(x, {"bearer_token_file": path}, "Bearer sesame", "Bearer open")


@row("basic authentication", "an htpasswd file with an apr1 hash; right, wrong and no password, on both wires",
     "served; twice 401/UNAUTHENTICATED",
     own=True, only="mcp-verdict")
def basic(x):
    path = os.path.join(x.folder(), "htpasswd")
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "sesame"], capture_output=True, text=True, check=True).stdout
    with open(path, "w") as f:
        f.write("ann:" + hashed)
    coded = lambda word: "Basic " + base64.b64encode(("ann:" + word).encode()).decode()
    authentication(x, {"basic": {"htpasswd_file": path}}, coded("sesame"), coded("open"))


@row("listens on loopback by default", "started with exporters only, no receivers section",
     "4317 and 4318 answer on 127.0.0.1 and not on other addresses", own=True)
def loopback(x):
    if is_open(4317) or is_open(4318):
        raise Skip("4317 or 4318 is in use on this machine")
    t, sink = x.start()
    t.kill()
    config = json.load(open(t.config))
    config["receivers"] = {"otlp": {"protocols": {"grpc": {}, "http": {}}}} if x.kind == "collector" else None
    json.dump({k: v for k, v in config.items() if v}, open(t.config, "w"))
    t.start(wait=False)
    sink.until(lambda: is_open(4317) and is_open(4318), 8)
    need(is_open(4317) and is_open(4318), "ports not open: " + t.tail())
    lines = [l.split() for f in ("/proc/net/tcp", "/proc/net/tcp6") for l in open(f)][1:]
    where = {l[1].split(":")[0] for l in lines if l[3] == "0A" and l[1].split(":")[1] in ("10DD", "10DE")}
    need(where == {"0100007F"}, "listening on %s" % where)


@row("CORS only when configured", "a preflight from http://a.example without and with allowed_origins",
     "no allow-origin header, then one", own=True)
def cors(x):
    ask = lambda t: post(t.http, b"", method="OPTIONS", headers=[("Origin", "http://a.example"), ("Access-Control-Request-Method", "POST"),
                                                               ("Access-Control-Request-Headers", "content-type")])
    t, _ = x.start()
    need("access-control-allow-origin" not in ask(t).headers, "allowed without being configured")
    t, _ = x.start(cors=["http://a.example"])
    need(ask(t).headers.get("access-control-allow-origin") == "http://a.example", "not allowed though configured: %s" % ask(t).headers)
    a = post(t.http, one(new_trace()), headers=[("Origin", "http://b.example")])
    need("access-control-allow-origin" not in a.headers, "another origin allowed")


import edge_export_rows  # noqa: E402,F401, registers its rows

if __name__ == "__main__":
    table.main(__doc__)
