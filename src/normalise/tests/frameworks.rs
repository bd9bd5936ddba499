//! Frameworks around calls: what their spans say of the call below, and of nothing else.

use serde_json::{Value, json};

use super::dialects::{check, row, short};
use super::sight_line;
use crate::model::fact::Fact;
use crate::model::policy::{Glob, Policy, Rule, SpanMatcher};
use crate::model::words::{Effect, OutcomeMethod};

/// Tool spans of frameworks that do not name MCP: they speak of a call below, if one is there.
#[test]
fn how_a_frameworks_tool_ended() {
    let tool = |more: Value| {
        let mut all = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"});
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let strands = |text| {
        let attributes = tool(json!({"gen_ai.tool.status": "error"}));
        row("strands.telemetry.tracer", "execute_tool t", 1, attributes).failed(text)
    };
    check(strands("division by zero"), &["below Unknown tools/call t isError=true"]);
    check(
        strands("Tool execution failed: Server returned an error response"),
        &["below Unknown tools/call t Unnamed"],
    );
    check(row("strands.telemetry.tracer", "execute_tool t", 1, tool(json!({}))), &[]);
    let python = json!({"openinference.span.kind": "TOOL"});
    let raised = json!([["exception", {"exception.type": "RuntimeError",
                         "exception.message": "Failed to call a MCP tool: division by zero"}]]);
    check(
        row("openinference.instrumentation.dspy", "t.acall", 1, python).failed("").events(raised),
        &["below Unknown tools/call t isError=true"],
    );
    let shown = |flag| {
        let text = format!("meta=None content=[TextContent(text='x')] is_error={flag} result=1");
        let attributes = json!({"openinference.span.kind": "TOOL", "tool.name": "t",
                                "output.value": text});
        row("openinference.instrumentation.llama_index", "FunctionTool.acall", 1, attributes)
    };
    check(shown("True"), &["below Unknown tools/call t isError=true result"]);
    check(shown("False"), &["below Unknown tools/call t isError=false result"]);
}

#[test]
fn a_rule_speaks_beside_a_frameworks_tool() {
    let attributes = json!({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t",
                            "gen_ai.tool.status": "error"});
    let span = SpanMatcher { name: Some(Glob("execute_tool t".into())), ..SpanMatcher::default() };
    let rule = Rule {
        when_server: None,
        when_tool: None,
        span,
        effect: Some(Effect::Absent),
        outcome: None,
        method: OutcomeMethod::Query,
    };
    let policy = Policy { evidence: vec![rule], ..Policy::default() };
    let row = row("strands.telemetry.tracer", "execute_tool t", 1, attributes).failed("no");
    let facts = sight_line(&row.line(), &policy).facts;
    let effects = |fact: &Fact| fact.evidence.effects.len();
    let of = |fact: &Fact| (short(fact), effects(fact));
    let want = [("below Unknown tools/call t isError=true".to_owned(), 0), ("evidence".into(), 1)];
    assert_eq!(facts.iter().map(|fact| of(fact)).collect::<Vec<_>>(), want);
}
