"""Who may ask, and what a page of the explorer may do."""

import re
from importlib.resources import files

import pytest

PATHS = ["/", "/assets/explorer.js", "/assets/vega.js", "/api/sample", "/api/worst"]
DATA = ["/api/sample", "/api/worst", "/api/question", "/api/floor", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
def test_the_own_page_is_served(client, path):
    for headers in ({}, {"Origin": "http://127.0.0.1:8123", "Sec-Fetch-Site": "same-origin"}):
        assert client.get(path, headers=headers).status_code == 200
    assert client.get(path, headers={"Host": "localhost:8123"}).status_code == 200


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "host", ["example.org", "127.0.0.1", "127.0.0.1:8124", "127.0.0.1.example.org:8123", "[::1]:8123", ""]
)
def test_foreign_hosts_are_refused(client, path, host):
    assert client.get(path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "origin",
    [
        "http://example.org",
        "null",
        "http://127.0.0.1:9999",
        "https://127.0.0.1:8123",
        "http://localhost:8123",
    ],
)
def test_foreign_origins_are_refused(client, path, origin):
    assert client.get(path, headers={"Origin": origin}).status_code == 403
    assert client.post(path, headers={"Origin": origin}).status_code == 403
    assert client.options(path, headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_pages_may_lead_here_but_not_use_it(client, site):
    refused = [
        path for path in PATHS if client.get(path, headers={"Sec-Fetch-Site": site}).status_code == 403
    ]
    assert refused == PATHS[1:]


@pytest.mark.parametrize("path", DATA)
@pytest.mark.parametrize(
    "given", ["", "right", "Bearer", "Bearer ", "Bearer wrong", "Bearer righ", "Basic right"]
)
def test_data_need_the_token(client_of, explorer, path, given):
    client = client_of(explorer, Authorization=given)
    for method in ("GET", "POST"):
        response = client.request(method, path)
        assert (response.status_code, response.text) == (403, "Wrong token.")


def test_a_token_of_odd_letters_is_just_wrong(client):
    response = client.get("/api/sample", headers={"Authorization": "Bearer \xe9".encode("latin-1")})
    assert response.status_code == 403


def test_nothing_of_the_data_is_in_what_needs_no_token(client, fashion):
    client.headers.pop("Authorization")
    for path in ("/", "/assets/explorer.js", "/assets/page.js", "/assets/explorer.css", "/assets/icon.svg"):
        response = client.get(path)
        assert response.status_code == 200
        assert not any(name in response.text for name in (*fashion.class_names, "clothes", "footwear"))


@pytest.mark.parametrize("path", [*PATHS, "/nothing"])
def test_every_answer_has_a_strict_policy(client, path):
    headers = client.get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == policy["style-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert headers["cache-control"] == "no-store"
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers
    assert "access-control-allow-origin" not in headers


def test_the_page_asks_for_nothing_foreign_and_holds_no_script(client):
    page = client.get("/").text
    assert re.findall(r"<script[^>]*>(.*?)</script>", page, re.DOTALL) == ["", "", "", ""]
    assert all(
        address.startswith(("/assets/", "#")) for address in re.findall(r'(?:src|href)="([^"]*)"', page)
    )
    assert not re.search(r"\son\w+=|<style|style=", page)


@pytest.mark.parametrize("package", ["polycal.explorer", "polycal.report"])
def test_our_scripts_write_no_markup(package):
    for script in files(package).joinpath("static").iterdir():
        if script.name.endswith(".js"):
            text = script.read_text(encoding="utf-8")
            assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(", text)
