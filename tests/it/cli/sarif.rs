//! Logs of the Static Analysis Results Interchange Format.

use serde_json::Value;

/// Asserts the rules of the SARIF specification (OASIS, version 2.1.0) for the parts of a log that we write.
pub(super) fn hold_to_the_specification(log: &Value) {
    assert_eq!(log["version"], "2.1.0");
    assert!(log["$schema"].as_str().unwrap().contains("sarif-2.1.0"));
    for run in log["runs"].as_array().expect("3.13.4: runs") {
        let driver = &run["tool"]["driver"];
        assert!(driver["name"].as_str().is_some_and(|name| !name.is_empty()), "3.19.8: {driver}");
        assert!(["utf16CodeUnits", "unicodeCodePoints"].contains(&run["columnKind"].as_str().unwrap()), "3.14.27");
        let rules = driver["rules"].as_array().unwrap();
        let mut ids: Vec<_> = rules.iter().map(|rule| rule["id"].as_str().expect("3.49.3: id")).collect();
        for rule in rules {
            assert!(
                rule["shortDescription"]["text"].as_str().is_some_and(|text| text.ends_with('.')),
                "3.49.9: {rule}"
            );
        }
        for result in run["results"].as_array().expect("3.14.23: an array, even if empty") {
            assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()), "3.27.11: {result}");
            let index = usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap();
            assert_eq!(result["ruleId"], ids[index], "3.27.7");
            assert_eq!(result["level"], rules[index]["defaultConfiguration"]["level"], "3.27.10");
            assert!(["error", "warning", "note", "none"].contains(&result["level"].as_str().unwrap()), "3.27.10");
            for location in result["locations"].as_array().unwrap() {
                let logical = &location["logicalLocations"][0];
                assert!(logical["fullyQualifiedName"].is_string() && logical["name"].is_string(), "3.33: {location}");
                let Some(physical) = location.get("physicalLocation") else { continue };
                let uri = physical["artifactLocation"]["uri"].as_str().expect("3.4.3: uri");
                assert!(
                    uri.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"\\^`{|}".contains(&byte)),
                    "RFC 3986: {uri}"
                );
                for number in ["startLine", "startColumn"] {
                    assert!(physical["region"][number].as_u64().is_some_and(|number| number > 0), "3.30: {physical}");
                }
            }
        }
        for invocation in run["invocations"].as_array().unwrap() {
            assert!(invocation["executionSuccessful"].is_boolean(), "3.20.14: {invocation}");
            for notification in invocation["toolExecutionNotifications"].as_array().unwrap() {
                assert!(notification["message"]["text"].is_string(), "3.58.5: {notification}");
            }
        }
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), rules.len(), "3.49.3: each rule once");
    }
}
