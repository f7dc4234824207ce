"""One environment: project, lock, environment.yml, Makefile and papers agree."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
import yaml
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

import badges
import browser
import normlab

ROOT = Path(__file__).parent.parent
PYTHONS = ("3.11", "3.12", "3.13")
SYSTEMS = {"linux": "posix", "darwin": "posix", "win32": "nt"}


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def project():
    return tomllib.loads(read("pyproject.toml"))["project"]


def lock(name="requirements.lock"):
    return [Requirement(line) for line in read(name).splitlines()]


def wanted(*names):
    """What project and extras ask for, all but grading or these: the ranges by name."""
    optional = project()["optional-dependencies"]
    extras = [optional[name] for name in names or optional.keys() - {"grading"}]
    lines = [*project()["dependencies"], *(line for extra in extras for line in extra)]
    requirements = [Requirement(line) for line in lines]
    return {canonicalize_name(r.name): r for r in requirements if r.name != "normlab"}


def targets():
    """The Makefile's targets that a person may call."""
    return set(re.findall(r"^([a-z]+):.*## ", read("Makefile"), flags=re.MULTILINE))


def test_the_lock_pins_every_package_exactly():
    for requirement in lock():
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(requirement.specifier))
        assert not requirement.url
        assert not requirement.extras


def test_the_lock_holds_no_build_of_torch_for_one_device():
    assert [str(r) for r in lock() if r.name == "torch"] == ["torch==2.13.0"]
    assert not re.search(r"^(nvidia|cuda|triton)|\+", read("requirements.lock"), re.M)


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_one_fitting_version_of_all_we_ask_for(python, system):
    here = default_environment() | {
        "python_version": python,
        "python_full_version": f"{python}.9",
        "sys_platform": system,
        "os_name": SYSTEMS[system],
        "implementation_name": "cpython",
    }
    pins = {}
    for requirement in lock():
        if not requirement.marker or requirement.marker.evaluate(here):
            name = canonicalize_name(requirement.name)
            assert name not in pins, f"{name} is pinned twice"
            pins[name] = str(requirement.specifier)[2:]
    for name, requirement in wanted().items():
        assert name in pins, f"{name} is not in the lock"
        assert requirement.specifier.contains(pins[name]), f"{name} is out of its range"


def test_what_is_installed_is_what_is_locked():
    for requirement in lock():
        if not requirement.marker or requirement.marker.evaluate():
            version = metadata.version(requirement.name).partition("+")[0]
            assert requirement.specifier.contains(version), requirement.name


def test_grading_adds_to_the_lock_and_repeats_nothing_of_it():
    base = {canonicalize_name(r.name): r for r in lock()}
    added = {canonicalize_name(r.name): r for r in lock("grading.lock")}
    assert "nbgrader" in added
    assert not added.keys() & base.keys()
    assert not {"nbgrader"} & base.keys()
    pins = {name: str(r.specifier)[2:] for name, r in (base | added).items()}
    for name, requirement in wanted("grading").items():
        assert requirement.specifier.contains(pins[name]), name
    for requirement in added.values():
        assert re.fullmatch(r"==[0-9][0-9a-z.]*", str(requirement.specifier))
    assert "pip install --quiet --no-compile --no-deps -r grading.lock" in read(
        "Makefile"
    )


def test_conda_takes_python_and_pip_and_leaves_the_rest_to_the_lock():
    recipe = yaml.safe_load(read("environment.yml"))
    assert recipe["name"] == "normlab"
    assert recipe["channels"] == ["conda-forge"]
    python, pip, rest = recipe["dependencies"]
    assert pip == "pip"
    cpu = "--extra-index-url https://download.pytorch.org/whl/cpu"
    assert rest == {"pip": [cpu, "-r requirements.lock", "-e ."]}
    name, _, version = python.partition("=")
    assert name == "python"
    assert SpecifierSet(project()["requires-python"]).contains(version)
    assert version in PYTHONS


def test_every_way_in_asks_for_the_same_python():
    assert project()["requires-python"] == f">={PYTHONS[0]}"
    script = read("tools/environment.sh")
    assert f"sys.version_info < ({PYTHONS[0].replace('.', ', ')})" in script
    assert f"Python {PYTHONS[0]} or newer is needed" in script
    workflow = yaml.safe_load(read(".github/workflows/test.yml"))
    assert workflow["jobs"]["test"]["strategy"]["matrix"]["python"] == list(PYTHONS)


def test_make_installs_the_lock_and_renews_it_from_the_project():
    assert "pip install $quiet --no-compile -r requirements.lock" in read(
        "tools/environment.sh"
    )
    assert re.search(r"^\$\(STAMP\):.* requirements.lock", read("Makefile"), re.M)
    pin = re.search(r"'(torch==.*)' >", read("Makefile")).group(1)
    assert pin in read("requirements.lock").splitlines()


def test_automation_calls_make():
    assert read(".ci/run").rstrip().endswith("exec make test")
    steps = yaml.safe_load(read(".github/workflows/test.yml"))["jobs"]["test"]["steps"]
    calls = [step["run"] for step in steps if "run" in step]
    assert {call.split()[1] for call in calls if call.startswith("make")} <= targets()
    assert "make test" in calls


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md"])
def test_the_make_targets_that_a_page_names_exist(page):
    named = set(re.findall(r"(?:`|^ *)make ([a-z]+)", read(page), flags=re.MULTILINE))
    assert {"lab", "test"} <= named <= targets()


def test_versions_agree():
    citation = yaml.safe_load(read("CITATION.cff"))
    assert citation["version"] == project()["version"] == normlab.__version__
    assert metadata.version("normlab") == normlab.__version__
    assert citation["license"] == project()["license"] == "MIT"


def test_the_repository_has_one_address():
    address = project()["urls"]["Repository"]
    assert yaml.safe_load(read("CITATION.cff"))["repository-code"] == address
    from notebook_checks import INSTALL

    assert f"git+{address}\n" in INSTALL


def test_a_browser_by_name_is_taken_first(monkeypatch):
    monkeypatch.setenv("NORMLAB_BROWSER", "python")
    assert Path(browser.find()).name.startswith("python")
    monkeypatch.setenv("NORMLAB_BROWSER", "no-such-browser")
    assert browser.find() is None


def test_a_missing_browser_is_told_with_the_way_out(monkeypatch):
    monkeypatch.setenv("NORMLAB_BROWSER", "no-such-browser")
    monkeypatch.setattr(browser, "INSTALLERS", ())
    with pytest.raises(SystemExit, match=r"none was found .*\nInstall one"):
        browser.main()


def test_readme_lists_every_chapter_with_its_links():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for notebook in badges.notebooks():
        row = next(row for row in text.splitlines() if f"]({notebook})" in row)
        assert re.findall(r"\[(\w+)\]\((http[^)]+)\)", row) == list(
            badges.links(notebook).items()
        )
