"""A small hub in memory that speaks the part of Hugging Face's API by which files are pushed and fetched."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TOKEN = "hf_test"


@dataclass
class Hub:
    """Repositories as lists of commits, each a mapping of paths to contents."""

    repositories: dict[str, list[dict[str, bytes]]] = field(default_factory=dict)
    private: set[str] = field(default_factory=set)
    large: dict[str, bytes] = field(default_factory=dict)  # by sha256
    fetched: list[tuple[str, str | None]] = field(default_factory=list)  # paths and ranges of GETs
    pushed: int = 0  # large files
    cut: dict[str, int] = field(default_factory=dict)  # path -> bytes after which its next GET breaks off
    address: str = ""
    fault: int | None = None  # a status that every request gets

    def app(self) -> Starlette:
        """Return the application."""
        name = "{owner}/{name}"
        routes = [
            ("/api/repos/create", self.create, "POST"),
            ("/api/validate-yaml", self.valid, "POST"),
            (f"/api/models/{name}/preupload/{{revision}}", self.modes, "POST"),
            (f"/api/models/{name}/commit/{{revision}}", self.commit, "POST"),
            (f"/api/models/{name}/tree/{{revision}}", self.tree, "GET"),
            (f"/api/models/{name}/revision/{{revision}}", self.info, "GET"),
            (f"/api/models/{name}", self.info, "GET"),
            ("/{owner}/{name}.git/info/lfs/objects/batch", self.batch, "POST"),
            ("/large/{digest}", self.store, "PUT"),
            (f"/{name}/resolve/{{revision}}/{{path:path}}", self.file, "GET"),
        ]

        def guarded(endpoint: Any) -> Any:
            async def answer(request: Request) -> Response:
                if self.fault:
                    return Response(status_code=self.fault)
                if request.method == "POST" and request.headers.get("authorization") != f"Bearer {TOKEN}":
                    return JSONResponse({"error": "Invalid username or password."}, 401)
                answered: Response = await endpoint(request)
                return answered

            return answer

        return Starlette(routes=[Route(path, guarded(endpoint), methods=[method]) for path, endpoint, method in routes])

    async def create(self, request: Request) -> Response:
        asked = await request.json()
        repository = f"{asked['organization']}/{asked['name']}"
        if repository in self.repositories:
            known = {"url": f"{self.address}/{repository}", "error": "You already created this model repo"}
            return JSONResponse(known, 409)
        self.repositories[repository] = [{".gitattributes": b""}]
        if asked.get("visibility") == "private" or asked.get("private"):
            self.private.add(repository)
        return JSONResponse({"url": f"{self.address}/{repository}", "name": repository})

    async def valid(self, _: Request) -> Response:
        return JSONResponse({"errors": [], "warnings": []})

    async def modes(self, request: Request) -> Response:
        files = (await request.json())["files"]
        told = [
            {"path": one["path"], "uploadMode": mode(one["path"]), "shouldIgnore": False, "oid": None} for one in files
        ]
        return JSONResponse({"files": told})

    async def batch(self, request: Request) -> Response:
        objects = []
        for one in (await request.json())["objects"]:
            actions = {"upload": {"href": f"{self.address}/large/{one['oid']}", "header": {}}}
            objects.append(one | ({} if one["oid"] in self.large else {"actions": actions}))
        return JSONResponse({"transfer": "basic", "objects": objects}, media_type="application/vnd.git-lfs+json")

    async def store(self, request: Request) -> Response:
        body = await request.body()
        assert hashlib.sha256(body).hexdigest() == request.path_params["digest"]
        self.large[request.path_params["digest"]] = body
        self.pushed += 1
        return Response()

    async def commit(self, request: Request) -> Response:
        commits = self.repositories[self.repository(request)]
        files = dict(commits[-1])
        for line in (await request.body()).splitlines():
            asked = json.loads(line)
            value = asked["value"]
            if asked["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif asked["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
            elif asked["key"] == "deletedFile":
                del files[value["path"]]
        commits.append(files)
        name = digest(files)
        url = f"{self.address}/{self.repository(request)}/commit/{name}"
        return JSONResponse({"success": True, "commitOid": name, "commitUrl": url})

    async def info(self, request: Request) -> Response:
        found = self.found(request)
        if isinstance(found, Response):
            return found
        listed = [{"rfilename": path} for path in found]
        return JSONResponse({"id": self.repository(request), "sha": digest(found), "siblings": listed, "tags": []})

    async def tree(self, request: Request) -> Response:
        found = self.found(request)
        if isinstance(found, Response):
            return found
        return JSONResponse([described(path, content) for path, content in found.items()])

    async def file(self, request: Request) -> Response:
        found = self.found(request)
        if isinstance(found, Response):
            return found
        path = request.path_params["path"]
        content = found.get(path)
        if content is None:
            return Response(status_code=404, headers={"x-error-code": "EntryNotFound"})
        headers = {"x-repo-commit": digest(found), "etag": f'"{etag(path, content)}"', "accept-ranges": "bytes"}
        if mode(path) == "lfs":
            headers |= {"x-linked-etag": f'"{etag(path, content)}"', "x-linked-size": str(len(content))}
        if request.method == "HEAD":
            return Response(headers=headers | {"content-length": str(len(content))})
        asked = request.headers.get("range")
        self.fetched.append((path, asked))
        start = int(asked.removeprefix("bytes=").partition("-")[0]) if asked else 0
        if asked:
            headers["content-range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        headers["content-length"] = str(len(content) - start)
        end = self.cut.pop(path, None)
        return Cut(content[start:end], 206 if asked else 200, headers)

    def repository(self, request: Request) -> str:
        return f"{request.path_params['owner']}/{request.path_params['name']}"

    def found(self, request: Request) -> dict[str, bytes] | Response:
        """Return the files of a revision."""
        repository, revision = self.repository(request), request.path_params.get("revision", "main")
        known = repository in self.repositories
        if not known or (repository in self.private and request.headers.get("authorization") != f"Bearer {TOKEN}"):
            return Response(status_code=401 if known else 404, headers={"x-error-code": "RepoNotFound"})
        commits = self.repositories[repository]
        named = {digest(files): files for files in commits} | {"main": commits[-1]}
        if revision not in named:
            return Response(status_code=404, headers={"x-error-code": "RevisionNotFound"})
        return named[revision]


class Cut(Response):
    """A response whose body may end before its length says so, as when a connection breaks."""

    def init_headers(self, headers: Mapping[str, str] | None = None) -> None:
        self.raw_headers = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]


def mode(path: str) -> str:
    return "lfs" if path.endswith((".safetensors", ".marisa")) else "regular"


def digest(files: dict[str, bytes]) -> str:
    """Return the name of a commit."""
    told = sorted((path, hashlib.sha256(content).hexdigest()) for path, content in files.items())
    return hashlib.sha1(json.dumps(told).encode()).hexdigest()


def etag(path: str, content: bytes) -> str:
    if mode(path) == "lfs":
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def described(path: str, content: bytes) -> dict[str, Any]:
    record: dict[str, Any] = {"type": "file", "path": path, "size": len(content), "oid": etag(path, content)}
    if mode(path) == "lfs":
        record["lfs"] = {"oid": etag(path, content), "size": len(content), "pointerSize": 130}
    return record
