//! `coverage`: per server and tool, which layers were ever observed and on what evidence, and what
//! to add so that the most calls leave `unverified`. `--try` says what each rule of a file would
//! have matched and changed. It holds no rule: it prints what [`crate::coverage`] found.

mod text;

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value as Json, json};

use super::{ConfigArgs, Exit, Failure, Format, input, tell_mistakes, terminal};
use crate::config;
use crate::coverage::{Advice, Advised, Part, Recording, Tool, Tried, advice, rules};
use crate::model::policy::Rule;

#[derive(Args, Debug)]
pub struct CoverageArgs {
    /// Recorded OTLP, as for `replay`
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    config: ConfigArgs,
    /// How it is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Evidence rules to try instead: a configuration, `evidence:` alone, or the bare list
    #[arg(long = "try", value_name = "RULES.yaml")]
    rules: Option<PathBuf>,
}

pub fn run(args: &CoverageArgs) -> Result<Exit, Failure> {
    let settings = args.config.load()?;
    let rules = match &args.rules {
        Some(path) => Some(load(path)?),
        None => None,
    };
    let mut exports = Vec::new();
    let mut take = |signal, export: &[u8]| exports.push((signal, export.to_vec()));
    if let Err(error) = input::read(&args.files, &mut take) {
        terminal::tell(&error);
        return Ok(Exit::Input);
    }
    let recording = Recording::new(exports, settings.policy);
    let mut out = terminal::out();
    let width = terminal::width();
    match (rules, args.format) {
        (Some(rules), format) => {
            let tried = rules::try_out(&recording, &rules);
            let together = rules::together(&recording, &rules);
            match format {
                Format::Text => text::tried(&mut out, &rules, &tried, &together)?,
                Format::Json => line(&mut out, &tried_json(&rules, &tried, &together))?,
            }
        }
        (None, format) => {
            let tools = crate::coverage::tools(&recording);
            let advice = advice::advice(&recording, &tools);
            match format {
                Format::Text => text::report(&mut out, &tools, &advice, width)?,
                Format::Json => line(&mut out, &report_json(&tools, &advice)?)?,
            }
        }
    }
    Ok(Exit::Done)
}

fn line(out: &mut dyn Write, json: &Json) -> std::io::Result<()> {
    serde_json::to_writer(&mut *out, json)?;
    writeln!(out)
}

fn load(path: &std::path::Path) -> Result<Vec<Rule>, Exit> {
    let (rules, warnings) = config::rules(path).map_err(|mistakes| {
        tell_mistakes(&mistakes);
        Exit::Config
    })?;
    warnings.iter().for_each(|warning| terminal::tell(warning));
    if rules.is_empty() {
        terminal::tell(&format!("{}: holds no evidence rule", path.display()));
        return Err(Exit::Input);
    }
    Ok(rules)
}

/// `{"tools": [{…, "advice": {…}, "configured": {…}}]}`, the most unverified calls first.
fn report_json(tools: &[Tool], advised: &[Advised]) -> serde_json::Result<Json> {
    let told = |advice: &Option<Advice>| match advice {
        Some(advice) => advice_json(advice),
        None => Ok(Json::Null),
    };
    let tool = |(tool, advised): (&Tool, &Advised)| -> serde_json::Result<Json> {
        let mut json = serde_json::to_value(tool)?;
        json["advice"] = told(&advised.most)?;
        json["configured"] = told(&advised.configured)?;
        Ok(json)
    };
    let tools: Result<Vec<Json>, _> = tools.iter().zip(advised).map(tool).collect();
    Ok(json!({ "tools": tools? }))
}

fn advice_json(advice: &Advice) -> serde_json::Result<Json> {
    let lifted: Vec<String> = advice.lifted.iter().map(ToString::to_string).collect();
    let attributes: serde_json::Map<String, Json> = advice
        .attributes()
        .into_iter()
        .flatten()
        .map(|(key, value)| Ok((key.to_string(), serde_json::to_value(value)?)))
        .collect::<serde_json::Result<_>>()?;
    let spans: Vec<Json> = advice
        .spans()
        .map(|at| json!({ "trace_id": at.trace.to_string(), "span_id": at.span.to_string() }))
        .collect();
    let kinds: Vec<&str> = advice.parts.iter().map(kind).collect();
    Ok(json!({
        "adds": kinds,
        "config": crate::coverage::config(&advice.parts),
        "attributes": attributes,
        "attribute_spans": spans,
        "lifts": lifted.len(),
        "to": serde_json::to_value(&advice.to)?,
        "chains": lifted,
    }))
}

fn kind(part: &Part) -> &'static str {
    match part {
        Part::Rule(_) => "evidence_rule",
        Part::Attributes(_) => "attributes",
        Part::Requires { .. } => "healthy_requires",
    }
}

fn tried_json(rules: &[Rule], tried: &[Tried], together: &Tried) -> Json {
    let one = |(rule, tried): (&Rule, &Tried)| {
        let parts = [Part::Rule(Box::new(rule.clone()))];
        json!({ "config": crate::coverage::config(&parts), "does": tried })
    };
    let rules: Vec<Json> = rules.iter().zip(tried).map(one).collect();
    json!({ "rules": rules, "together": together })
}
