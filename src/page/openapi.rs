//! The API as an OpenAPI 3.1 document: `GET /v1/openapi.json`. Words come from their registries;
//! a test holds every answer to the schemas here, which allow nothing that they do not name.

use serde_json::{Value, json};

use super::schemas::{id, schemas, text};
use super::timeline::MINUTES;

/// The whole document.
pub fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "mcp-verdict",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What mcp-verdict judged, and the check before a call.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths(),
        "components": {
            "schemas": schemas(),
            "responses": {"wrong": {
                "description": "What is wrong, as a sentence",
                "content": {"application/json": {"schema": named("Error")}},
            }},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "basic": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"bearer": []}, {"basic": []}],
    })
}

/// Paths as the router has them.
pub fn paths() -> Value {
    json!({
        "/v1/overview": get("What is going on", vec![minutes()], "Overview"),
        "/v1/chains": get("Chains by their latest verdict, newest first", paged(vec![
            query("state", "states, separated by commas"),
            query("first_failed_layer", "layers of the failure ladder, separated by commas"),
            query("server", "a server's name"),
            query("tool", "a tool's name"),
            query("agent", "an agent's name"),
            query("text", "part of a name, of a code, or four digits or more of an id"),
        ]), "Chains"),
        "/v1/chains/{id}": get("One chain and what its verdict rests on", vec![json!({
            "name": "id", "in": "path", "required": true, "schema": id(),
        })], "Chain"),
        "/v1/incidents": get("Incidents, last changed first", paged(vec![
            query("status", "statuses, separated by commas"),
            query("owner", "owners, separated by commas"),
            query("server", "a server's name"),
        ]), "Incidents"),
        "/v1/sessions": get("Scopes and their catalogs, last changed first", paged(vec![
            query("convergence", "words, separated by commas"),
            query("text", "part of a name or of a code"),
        ]), "Sessions"),
        "/v1/drifts": get("Changes of contracts, newest first", paged(vec![
            query("server", "a server's name"),
            query("tool", "a tool's name"),
            query("grade", "grades, separated by commas"),
        ]), "Drifts"),
        "/v1/contracts": get("What each tool was read to be, by holder", paged(vec![
            query("server", "a server's name"),
            query("tool", "a tool's name"),
        ]), "Contracts"),
        "/v1/coverage": get("What was observed of each tool, over remembered calls", vec![
            query("server", "a server's name"),
            query("tool", "a tool's name"),
            limit(),
        ], "Coverage"),
        "/v1/names": get("What remembered chains can be filtered by", Vec::new(), "Names"),
        "/v1/health": get("How the pipeline does", Vec::new(), "Health"),
        "/v1/openapi.json": {"get": {
            "summary": "This document",
            "responses": {"200": {"description": "OpenAPI 3.1",
                "content": {"application/json": {"schema": {"type": "object"}}}}},
        }},
        "/v1/contracts/check": {"post": {
            "summary": "May this tool be called by the definition that the caller holds?",
            "requestBody": {"required": true, "content": {
                "application/json": {"schema": named("Question")}}},
            "responses": answers("Answer"),
        }},
    })
}

fn get(summary: &str, parameters: Vec<Value>, schema: &str) -> Value {
    json!({"get": {"summary": summary, "parameters": parameters, "responses": answers(schema)}})
}

fn answers(schema: &str) -> Value {
    json!({
        "200": {
            "description": "The answer",
            "content": {"application/json": {"schema": named(schema)}},
        },
        "default": {"$ref": "#/components/responses/wrong"},
    })
}

fn query(name: &str, says: &str) -> Value {
    json!({"name": name, "in": "query", "description": says, "schema": text()})
}

fn minutes() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": MINUTES, "default": 60});
    json!({"name": "minutes", "in": "query", "schema": schema})
}

fn limit() -> Value {
    let schema = json!({"type": "integer", "minimum": 1, "maximum": 1000});
    json!({"name": "limit", "in": "query", "schema": schema})
}

fn paged(mut parameters: Vec<Value>) -> Vec<Value> {
    parameters.push(limit());
    parameters.push(query("page_token", "`next_page_token` of the page before"));
    parameters
}

pub(super) fn named(name: &str) -> Value {
    json!({"$ref": format!("#/components/schemas/{name}")})
}
