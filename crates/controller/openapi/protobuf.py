#!/usr/bin/env python3
"""Says how the built-in kinds are written as protobuf, for reading what kubectl sends.

  protobuf.py API APIMACHINERY > protobuf.json

The folders are those of the Go modules k8s.io/api and k8s.io/apimachinery. Their types say
by struct tags which field has which number, how it is called in JSON, and whether Go leaves
its zero value out. The output is one JSON object: message to its fields, each
[number, JSON name, type, zero values count]. Types: s text, b bytes, i integer, t truth,
time, micro, quantity, intstr, raw (JSON in bytes), or the name of a message; with [] before
it a list, with {} a map from text. A field without a JSON name is part of its parent.
"""
import json
import pathlib
import re
import sys

ROOTS = {
    "core": ["Namespace", "Secret", "ConfigMap", "Event", "Node"],
    "batch": ["Job"],
    "apps": ["Deployment"],
    "autoscaling": ["Scale"],
    "coordination": ["Lease"],
    "meta": ["DeleteOptions"],
}
SPECIAL = {
    "meta.Time": "time",
    "meta.MicroTime": "micro",
    "meta.FieldsV1": "raw",
    "resource.Quantity": "quantity",
    "intstr.IntOrString": "intstr",
    "runtime.RawExtension": "raw",
}
BASIC = {"string": "s", "bool": "t", "[]byte": "b", "int": "i", "int32": "i", "int64": "i", "types.UID": "s", "types.NodeName": "s"}
ALIAS = {"metav1": "meta", "v1": "core", "corev1": "core", "resource": "resource", "intstr": "intstr", "runtime": "runtime", "types": "types"}
FIELD = re.compile(r'^\s+(?:(\w+)\s+)?([\w\.\[\]\*]+)\s+`json:"([^"]*)"[^`]*protobuf:"(\w+),(\d+),(\w+)')


def read(folder, package, structs, names):
    text = (folder / "types.go").read_text()
    for match in re.finditer(r"^type (\w+) struct \{\n(.*?)^\}", text, re.M | re.S):
        structs[f"{package}.{match[1]}"] = [f.groups() for line in match[2].split("\n") if (f := FIELD.match(line))]
    for match in re.finditer(r"^type (\w+) ([\w\.\[\]\*]+)$", text, re.M):
        names[f"{package}.{match[1]}"] = match[2]


def main(api, machinery):
    structs, names = {}, {}
    for package in ROOTS:
        folder = machinery / "pkg/apis/meta/v1" if package == "meta" else api / package / "v1"
        read(folder, package, structs, names)

    def resolve(kind, package):
        kind = kind.removeprefix("*")
        if kind in BASIC:
            return BASIC[kind]
        if kind.startswith("[]"):
            return "[]" + resolve(kind[2:], package)
        if match := re.match(r"map\[[\w\.]+\](.*)", kind):
            return "{}" + resolve(match[1], package)
        if "." in kind:
            prefix, kind = kind.split(".")
            package = ALIAS[prefix]
        full = f"{package}.{kind}"
        if full in SPECIAL:
            return SPECIAL[full]
        if full in names:
            return resolve(names[full], package)
        return full

    out, wanted = {}, [f"{p}.{k}" for p, kinds in ROOTS.items() for k in kinds]
    while wanted:
        full = wanted.pop()
        if full in out:
            continue
        fields = []
        for _, kind, tag, _, number, _ in structs[full]:
            name, *options = tag.split(",")
            inline = "inline" in options
            resolved = resolve(kind, full.split(".")[0])
            keep = kind.startswith("*") or "omitempty" not in options
            fields.append([int(number), "" if inline else name, resolved, keep])
            message = resolved.replace("[]", "").replace("{}", "")
            if "." in message:
                wanted.append(message)
        out[full] = fields
    json.dump(out, sys.stdout, sort_keys=True, separators=(",", ":"))
    print(f"{len(out)} messages", file=sys.stderr)


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
