#!/usr/bin/env python3
"""Cuts the kinds that the server serves out of Kubernetes' own OpenAPI v3 documents.

  extract.py FOLDER > definitions.json.gz

FOLDER is `api/openapi-spec/v3` of a Kubernetes source tree or of the Go module
k8s.io/kubernetes. The output is a gzip file with one JSON object, schema name to
schema: the kinds below, their lists, and whatever they refer to. References stay
references. Defaults that are only Go's zero values are left out, because the server
must not write them into objects; examples of empty objects likewise.
"""
import gzip
import json
import pathlib
import sys

ROOTS = {
    "api__v1": ["io.k8s.api.core.v1." + k for k in ("Namespace", "Secret", "ConfigMap", "Event", "Node")],
    "apis__batch__v1": ["io.k8s.api.batch.v1.Job"],
    "apis__apps__v1": ["io.k8s.api.apps.v1.Deployment", "io.k8s.api.autoscaling.v1.Scale"],
    "apis__coordination.k8s.io__v1": ["io.k8s.api.coordination.v1.Lease"],
    "apis__apiextensions.k8s.io__v1": [
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition"
    ],
}
SHARED = ["io.k8s.apimachinery.pkg.apis.meta.v1." + k for k in ("Status", "DeleteOptions", "Patch")]
NO_LIST = {"io.k8s.api.autoscaling.v1.Scale"}


def trim(value):
    if isinstance(value, dict):
        return {
            k: trim(v)
            for k, v in value.items()
            if not (k == "default" and not isinstance(v, (dict, list)) and not v) and not (k == "default" and v == {})
        }
    if isinstance(value, list):
        return [trim(v) for v in value]
    return value


def references(value):
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"].rsplit("/", 1)[1]
        for v in value.values():
            yield from references(v)
    elif isinstance(value, list):
        for v in value:
            yield from references(v)


def own_kinds(schema, keep):
    """Kinds that every group shares (DeleteOptions) list every group; keep one entry each."""
    gvk = schema.get("x-kubernetes-group-version-kind")
    if gvk and len(gvk) > 1 and not keep:
        schema["x-kubernetes-group-version-kind"] = [g for g in gvk if g["group"] == "" and g["version"] == "v1"]
    return schema


def main(folder):
    known, wanted = {}, []
    for document, roots in ROOTS.items():
        with open(folder / f"{document}_openapi.json") as f:
            known.update(json.load(f)["components"]["schemas"])
        wanted += roots + [r + "List" for r in roots if r not in NO_LIST]
    wanted += SHARED
    out = {}
    while wanted:
        name = wanted.pop()
        if name in out:
            continue
        out[name] = own_kinds(trim(known[name]), False)
        wanted += references(out[name])
    text = json.dumps(out, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    sys.stdout.buffer.write(gzip.compress(text, 9, mtime=0))
    print(f"{len(out)} schemas, {len(text)} bytes", file=sys.stderr)


main(pathlib.Path(sys.argv[1]))
