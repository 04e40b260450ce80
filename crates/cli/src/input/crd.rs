//! Reads the unions of a CRD from its schema and its annotation, and makes the edits that change them.

pub(crate) use kube_unions_manifests::crd::schemas;

use super::manifest::{self, Document, Edit};
use anyhow::Context;
use kube::Client;
use kube_unions_api::{self as api, ListedObject, Pages};
use kube_unions_core::declaration::{ANNOTATION, ANNOTATIONS_LIMIT, AnnotationContent};
use kube_unions_core::field_path::{pointer, pointer_tokens};
use kube_unions_core::schema::{EXTENSION, Extension};
use kube_unions_manifests::crd::keywords;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// A CRD whose unions can be edited.
#[derive(Debug)]
pub(crate) struct EditableCrd<'d> {
    document: &'d Document,
    crd: Value,
    /// The extensions in the schemas of all versions, in the order of the text.
    pub(crate) extensions: Vec<SchemaExtension>,
    /// The content of the annotation, or an error if it is unreadable.
    pub(crate) annotation: Result<AnnotationContent, String>,
}

/// The edits of a CRD, and the reason if they leave it without a valid annotation.
pub(crate) type Moves = (Vec<Edit>, Option<String>);

#[derive(Debug)]
pub(crate) struct SchemaExtension {
    pub(crate) version: String,
    /// The JSON Pointer of its parent in the schema.
    pub(crate) pointer: String,
    pub(crate) value: Value,
}

/// Reads the CRDs of a cluster, page by page.
pub(crate) async fn for_each_stored(
    client: &Client,
    mut read: impl FnMut(&ListedObject<'_>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let resource = api::resource(client, "customresourcedefinitions.apiextensions.k8s.io").await?;
    let mut pages = Pages::of(client, &resource, None)?;
    while let Some(page) = pages.next().await.context("cannot list CustomResourceDefinitions")? {
        page.objects().try_for_each(|object| read(&object))?;
    }
    Ok(())
}

/// Adds the type of a CRD, which the items of a list do not have.
pub(crate) fn add_type(crd: &mut Map<String, Value>) {
    let typed = [("apiVersion", "apiextensions.k8s.io/v1"), ("kind", "CustomResourceDefinition")];
    for (at, (name, text)) in typed.into_iter().enumerate() {
        crd.shift_insert(at, name.to_owned(), text.into());
    }
}

impl<'d> EditableCrd<'d> {
    pub(crate) fn read(document: &'d Document) -> anyhow::Result<Self> {
        let crd: Value = serde_json::from_str(&document.text)
            .with_context(|| format!("{}: {} cannot be edited", document.file.display(), document.title()))?;
        let mut found = Vec::new();
        for (_, version, schema) in schemas(&crd) {
            for (path, _, value) in keywords(schema, |name| name == EXTENSION) {
                found.push(SchemaExtension {
                    version: version.to_owned(),
                    pointer: pointer(&path),
                    value: value.clone(),
                });
            }
        }
        let annotation = annotations(&crd).and_then(|annotations| annotations.get(ANNOTATION)).and_then(Value::as_str);
        let annotation = annotation.map(serde_json::from_str).transpose();
        let annotation = annotation.map(Option::unwrap_or_default).map_err(|error| {
            format!("not changed: the annotation `{ANNOTATION}` is unreadable ({error}); remove it first")
        });
        Ok(Self { document, crd, extensions: found, annotation })
    }

    /// Returns the places with a declaration, in a schema or in the annotation: version and JSON Pointer.
    pub(crate) fn places(&self) -> BTreeSet<(&str, &str)> {
        let annotated = self.annotation.iter().flatten();
        let annotated = annotated.flat_map(|(version, places)| places.keys().map(move |at| (&**version, &**at)));
        annotated.chain(self.extensions.iter().map(|it| (&*it.version, &*it.pointer))).collect()
    }

    /// Returns the unions of the annotation on the document that the CRD is made of, and the edit that removes it there.
    pub(crate) fn misplaced(&self) -> Result<Option<(AnnotationContent, Edit)>, String> {
        let Some(text) = self.document.made.as_ref().and_then(|made| made.misplaced.as_ref()) else { return Ok(None) };
        let content = serde_json::from_str(text).map_err(|error| {
            format!("not changed: the annotation `{ANNOTATION}` is unreadable ({error}); remove it first")
        })?;
        let source = self.document.with_origin(None);
        Ok(Some((content, Edit::Remove(source.path_in_text(&["metadata", "annotations", ANNOTATION])))))
    }

    /// Returns the CRD with more unions in its annotation.
    pub(crate) fn annotated(&self, more: &AnnotationContent) -> anyhow::Result<Document> {
        let (mut crd, mut content) = (self.crd.clone(), self.annotation.clone().unwrap_or_default());
        for (version, places) in more {
            content.entry(version.clone()).or_default().extend(places.clone());
        }
        let path = ["metadata", "annotations", ANNOTATION].map(str::to_owned).to_vec();
        if let Some(metadata) = crd.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("annotations").or_insert_with(|| Map::new().into());
        }
        crd = manifest::applied(crd, &[Edit::Set(path, serde_json::to_string(&content)?.into())]);
        Ok(self.document.with_text(crd.to_string()))
    }

    /// Returns the edit that sets the annotation, or removes it if there is nothing to declare.
    fn set_annotation(&self, declarations: &AnnotationContent) -> anyhow::Result<Edit> {
        let at = ["metadata", "annotations", ANNOTATION];
        if declarations.is_empty() {
            return Ok(Edit::Remove(self.document.path_in_text(&at)));
        }
        let mut value = Value::String(serde_json::to_string(declarations)?);
        let mut known = at.as_slice();
        while let Some((name, around)) = known.split_last()
            && !self.has_object(around)
        {
            value = Value::Object(Map::from_iter([((*name).to_owned(), value)]));
            known = around;
        }
        Ok(Edit::Set(self.document.path_in_text(known), value))
    }

    /// Returns true if the text has an object at a path of the CRD.
    fn has_object(&self, path: &[&str]) -> bool {
        if self.document.made.is_some() {
            return self.document.has_parent_of(&self.document.path_in_text(&[path, &["_"]].concat()));
        }
        path.iter().try_fold(&self.crd, |at, name| at.get(name)).is_some_and(Value::is_object)
    }

    /// Returns an error message if this annotation would exceed Kubernetes' limit for the annotations of an object.
    fn annotation_overflow(&self, declarations: &AnnotationContent) -> anyhow::Result<Option<String>> {
        let others = annotations(&self.crd).into_iter().flatten().filter(|(name, _)| *name != ANNOTATION);
        let others: usize = others.map(|(name, value)| name.len() + value.as_str().map_or(0, str::len)).sum();
        let total = others + ANNOTATION.len() + serde_json::to_string(declarations)?.len();
        Ok((total > ANNOTATIONS_LIMIT).then(|| {
            format!(
                "its annotations would take {total} bytes, and Kubernetes allows {ANNOTATIONS_LIMIT}: declare the unions in \
                 fewer versions, or split the CRD"
            )
        }))
    }

    /// Moves every extension of the schemas into the annotation and adds `marked`. An extension replaces what the annotation
    /// has at its place, and `marked` replaces both.
    pub(crate) fn move_to_annotation(&self, marked: &AnnotationContent) -> anyhow::Result<Moves> {
        let before = match &self.annotation {
            Ok(before) => before,
            Err(unreadable) => return Ok((Vec::new(), Some(unreadable.clone()))),
        };
        let (mut after, mut edits, mut problem) = (before.clone(), Vec::new(), None);
        for extension in &self.extensions {
            let places = after.entry(extension.version.clone()).or_default();
            places.insert(extension.pointer.clone(), extension.value.clone());
            edits.extend(self.place(&extension.version, &extension.pointer).map(Edit::Remove));
        }
        for (version, places) in marked.iter().filter(|(_, places)| !places.is_empty()) {
            after.entry(version.clone()).or_default().extend(places.clone());
        }
        if after != *before {
            problem = self.annotation_overflow(&after)?;
            edits.push(self.set_annotation(&after)?);
        }
        Ok((edits, problem))
    }

    /// Puts `marked` into the schemas and removes it from the annotation. What only the annotation can say goes there.
    pub(crate) fn move_to_schema(&self, marked: &AnnotationContent) -> anyhow::Result<Moves> {
        let before = match &self.annotation {
            Ok(before) => before,
            Err(unreadable) => return Ok((Vec::new(), Some(unreadable.clone()))),
        };
        let (mut after, mut edits) = (before.clone(), Vec::new());
        for (version, places) in marked {
            for (pointer, value) in places {
                let known = self.extensions.iter().find(|it| it.version == *version && it.pointer == *pointer);
                if !Extension::parse(value).is_ok_and(|extension| extension.fits_schema()) {
                    after.entry(version.clone()).or_default().insert(pointer.clone(), value.clone());
                    edits.extend(known.and_then(|_| self.place(version, pointer)).map(Edit::Remove));
                    continue;
                }
                if known.is_none_or(|known| known.value != *value) {
                    edits.extend(self.place(version, pointer).map(|path| Edit::Set(path, value.clone())));
                }
                if let Some(places) = after.get_mut(version) {
                    places.remove(pointer);
                }
            }
        }
        after.retain(|version, places| !places.is_empty() || before.get(version).is_some_and(BTreeMap::is_empty));
        if after != *before {
            edits.push(self.set_annotation(&after)?);
        }
        Ok((edits, None))
    }

    /// Returns the path of an extension in the schema of a version.
    fn place(&self, version: &str, pointer: &str) -> Option<Vec<String>> {
        let (index, _, _) = schemas(&self.crd).find(|(_, name, _)| *name == version)?;
        let (index, inner) = (index.to_string(), pointer_tokens(pointer)?);
        let way = ["spec", "versions", &index, "schema", "openAPIV3Schema"].into_iter();
        let path: Vec<&str> = way.chain(inner.iter().map(String::as_str)).chain([EXTENSION]).collect();
        Some(self.document.path_in_text(&path))
    }
}

fn annotations(crd: &Value) -> Option<&Map<String, Value>> {
    crd.pointer("/metadata/annotations").and_then(Value::as_object)
}
