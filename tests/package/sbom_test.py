#!/usr/bin/env python3
"""Checks the list of software that tools/sbom makes of a build tree.

The list must be SPDX 2.3, and must have each library that the program loads, the libraries that
consist of headers, and each npm module in the dashboard. ldd, dpkg and the bytes of the program are
the referees. Lists with a planted error show that each check can fail.

The argument is the build tree.
"""

import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BUILD = pathlib.Path(sys.argv[1]).resolve()
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = BUILD / "detent"
HEADERS_ONLY = ("libboost1.81-dev", "libcli11-dev", "libexpected-dev", "libtomlplusplus-dev")
MOMENT, CREATED = "1767225600", "2026-01-01T00:00:00Z"
# Fields that SPDX 2.3 requires, with the form of their values, and those that users of a list need.
DOCUMENT_FIELDS = {
    "spdxVersion": r"SPDX-2\.3", "dataLicense": r"CC0-1\.0", "SPDXID": r"SPDXRef-DOCUMENT",
    "name": r"detent-\d+\.\d+\.\d+", "documentNamespace": r"urn:uuid:[\da-f-]{36}"}
PACKAGE_FIELDS = {
    "SPDXID": r"SPDXRef-[A-Za-z0-9.-]+", "name": r".+", "versionInfo": r".+",
    "downloadLocation": r"NOASSERTION|https://.+", "licenseDeclared": r"[A-Za-z0-9.-]+( AND .+)?",
    "licenseConcluded": r".+", "copyrightText": r".+",
    "supplier": r"(Organization|Person): \S.*"}
RELATIONSHIPS = {"DESCRIBES", "CONTAINS", "DYNAMIC_LINK", "STATIC_LINK"}


def run(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def wrong_fields(where, value, fields):
    for field, form in fields.items():
        if not re.fullmatch(form, str(value.get(field, ""))):
            yield f"{where}: {field} is {value.get(field)!r}"


def invalid(document):
    """What is wrong with the form of a list."""
    yield from wrong_fields("document", document, DOCUMENT_FIELDS)
    created = document.get("creationInfo", {})
    if created.get("created") != CREATED or not any(
            creator.startswith("Tool: ") for creator in created.get("creators", [])):
        yield f"document: creationInfo is {created}"
    identifiers = ["SPDXRef-DOCUMENT"]
    texts = {text["licenseId"] for text in document["hasExtractedLicensingInfos"]
             if text["extractedText"]}
    for package in document["packages"]:
        name = package.get("name")
        yield from wrong_fields(name, package, PACKAGE_FIELDS)
        identifiers.append(package.get("SPDXID"))
        if not any(reference["referenceType"] == "purl" and
                   re.fullmatch(r"pkg:[a-z/]+/\S+@\S+", reference["referenceLocator"])
                   for reference in package.get("externalRefs", [])):
            yield f"{name}: has no purl"
        if package.get("filesAnalyzed") is not False:
            yield f"{name}: filesAnalyzed is not false, but there is no verification code"
        for text in re.findall(r"LicenseRef-[A-Za-z0-9.-]+", package.get("licenseDeclared", "")):
            if text not in texts:
                yield f"{name}: no text of {text}"
    for one in {one for one in identifiers if identifiers.count(one) > 1}:
        yield f"{one}: two elements have this identifier"
    for relation in document["relationships"]:
        for end in ("spdxElementId", "relatedSpdxElement"):
            if relation[end] not in identifiers:
                yield f"relationship: there is no {relation[end]}"
        if relation["relationshipType"] not in RELATIONSHIPS:
            yield f"relationship: {relation['relationshipType']}"


def packages_of(document):
    return {package["name"]: package for package in document["packages"]}


def has(package, address):
    return any(reference["referenceLocator"].startswith(address)
               for reference in package["externalRefs"])


def missing_libraries(document, loaded):
    """Libraries that the program loads, and that are not in the list with their version."""
    listed = packages_of(document)
    for name, (package, version) in loaded.items():
        found = listed.get(package)
        if not found or found["versionInfo"] != version or not has(
                found, f"pkg:deb/debian/{package}@") or not re.search(
                    rf"loads .*\b{re.escape(name)}[,.]", found["comment"]):
            yield f"{name} of {package} {version}"


def missing_modules(document, embedded):
    listed = packages_of(document)
    for name, version in embedded.items():
        if name not in listed or not has(listed[name], f"pkg:npm/{name}@{version}"):
            yield f"{name} {version}"


def linked(document, kind):
    return {relation["relatedSpdxElement"] for relation in document["relationships"]
            if relation["relationshipType"] == kind}


def loaded_libraries():
    """The libraries that ldd names, with the package and its version by dpkg."""
    found = {}
    for name, path in re.findall(r"^\s*(\S+) => (/\S+)", run("ldd", PROGRAM), re.MULTILINE):
        end = "/".join(os.path.realpath(path).rsplit("/", 2)[1:])
        owner = run("dpkg-query", "--search", f"*/{end}").partition(": ")[0]
        package, version = run("dpkg-query", "--show", "--showformat",
                               "${Package} ${Version}", owner).split()
        found[name] = (package, version)
    return found


def embedded_modules():
    """The npm modules that the build embeds, with the version that is installed."""
    build = (ROOT / "cmake/DetentDashboard.cmake").read_text("utf-8")
    folder = ROOT / "dashboard/node_modules"
    return {name: json.loads((folder / name / "package.json").read_text("utf-8"))["version"]
            for name in re.findall(r"\$\{folder\}/node_modules/([\w.-]+)/", build)}


def make_list():
    with tempfile.TemporaryDirectory() as work:
        output = pathlib.Path(work, "detent.spdx.json")
        subprocess.run([ROOT / "tools/sbom", BUILD, output], check=True,
                       env={**os.environ, "SOURCE_DATE_EPOCH": MOMENT})
        return output.read_bytes()


LIST = make_list()


class Sbom(unittest.TestCase):
    def setUp(self):
        self.document = json.loads(LIST)

    def test_it_is_spdx(self):
        self.assertEqual([], list(invalid(self.document)))

    def test_it_describes_our_packages_in_this_version(self):
        version = run(PROGRAM, "--version").split()[-1]
        described = linked(self.document, "DESCRIBES")
        for name in ("detent", "libdetent-dev"):
            package = packages_of(self.document)[name]
            self.assertEqual(version, package["versionInfo"])
            self.assertIn(package["SPDXID"], described)

    def test_it_has_each_library_that_the_program_loads(self):
        loaded = loaded_libraries()
        self.assertIn("librocksdb7.8", {package for package, _ in loaded.values()})
        self.assertEqual([], list(missing_libraries(self.document, loaded)))

    def test_it_has_the_libraries_of_headers(self):
        static = linked(self.document, "STATIC_LINK")
        for name in HEADERS_ONLY:
            self.assertIn(packages_of(self.document)[name]["SPDXID"], static)
        self.assertNotIn("libgtest-dev", packages_of(self.document), "only the tests use it")

    def test_it_has_each_npm_module_in_the_dashboard(self):
        embedded = embedded_modules()
        self.assertEqual(["uplot"], list(embedded))
        self.assertEqual([], list(missing_modules(self.document, embedded)))
        script = ROOT / "dashboard/node_modules/uplot/dist/uPlot.iife.min.js"
        self.assertIn(script.read_bytes(), PROGRAM.read_bytes(), "the program has another version")

    def test_the_same_program_gives_the_same_bytes(self):
        self.assertEqual(LIST, make_list())


class PlantedErrors(unittest.TestCase):
    """Each check finds the error that is planted for it."""

    def setUp(self):
        self.document = json.loads(LIST)

    def test_a_missing_field(self):
        for field in DOCUMENT_FIELDS:
            document = copy.deepcopy(self.document)
            del document[field]
            self.assertEqual(1, len(list(invalid(document))), field)
        for field in PACKAGE_FIELDS:
            document = copy.deepcopy(self.document)
            del document["packages"][-1][field]
            self.assertTrue(list(invalid(document)), field)

    def test_a_package_without_purl(self):
        self.document["packages"][0]["externalRefs"] = []
        self.assertEqual(["detent: has no purl"], list(invalid(self.document)))

    def test_a_license_without_text_and_a_relationship_without_end(self):
        del self.document["hasExtractedLicensingInfos"][0]
        self.assertIn("no text of LicenseRef-", "".join(invalid(self.document)))
        document = json.loads(LIST)
        document["relationships"][0]["relatedSpdxElement"] = "SPDXRef-Package-gone"
        self.assertEqual(["relationship: there is no SPDXRef-Package-gone"],
                         list(invalid(document)))

    def test_a_library_that_is_missing_or_of_another_version(self):
        loaded = loaded_libraries()
        rocksdb = packages_of(self.document)["librocksdb7.8"]
        rocksdb["versionInfo"] = "0"
        self.assertEqual(1, len(list(missing_libraries(self.document, loaded))))
        self.document["packages"].remove(packages_of(self.document)["libssl3"])
        self.assertEqual(3, len(list(missing_libraries(self.document, loaded))))

    def test_a_module_that_is_missing_or_of_another_version(self):
        self.assertEqual(["uplot 0"], list(missing_modules(self.document, {"uplot": "0"})))
        self.assertEqual(["new 1"], list(missing_modules(self.document, {"new": "1"})))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
