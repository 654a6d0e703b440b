"""`POST /github/commit`: files that become one commit."""

import base64
import binascii
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from sandpiper import limits
from sandpiper.models.requests import NOT_BLANK, SHORT_REPO_PATTERN, BranchName, RelativePath, RequestModel
from sandpiper.models.responses import ResponseModel

_SHA = r"^[0-9a-f]{40}$"


def _file_path(path: str) -> str:
    parts = path.split("/")
    if any(part in {"", "."} for part in parts):
        raise ValueError("must be the path of a file")
    if any(part.lower() == ".git" for part in parts):
        raise ValueError("must not lie in .git")
    return path


class CommitFile(RequestModel):
    """`content: null` deletes the file."""

    path: Annotated[RelativePath, AfterValidator(_file_path)]
    encoding: Literal["utf-8", "base64"] = "utf-8"
    content: str | None

    @field_validator("content")
    @classmethod
    def _is_encoded(cls, content: str | None, info: ValidationInfo) -> str | None:
        if content is not None and info.data.get("encoding") == "base64":
            try:
                base64.b64decode("".join(content.split()), validate=True)
            except (binascii.Error, ValueError):
                raise ValueError("is not valid base64") from None
        return content


def _one_each(files: list[CommitFile]) -> list[CommitFile]:
    paths = [file.path for file in files]
    kept = {file.path for file in files if file.content is not None}
    for path in paths:
        if paths.count(path) > 1:
            raise ValueError(f"names {path} twice")
        above = path.split("/")[:-1]
        if path in kept and any("/".join(above[:depth]) in kept for depth in range(1, len(above) + 1)):
            raise ValueError(f"makes a directory of {path} out of a file")
    return files


def _short_name(repo: str) -> str:
    if not re.fullmatch(SHORT_REPO_PATTERN, repo):
        raise ValueError("must be owner/repo")
    return repo.removesuffix(".git")


class CommitRequest(RequestModel):
    """All files or none, as one commit on `branch`, never forced."""

    repo: Annotated[
        str,
        Field(max_length=limits.MAX_NAME_CHARS, json_schema_extra={"pattern": f"^{SHORT_REPO_PATTERN}$"}),
        AfterValidator(_short_name),
    ]
    branch: BranchName
    files: Annotated[list[CommitFile], Field(min_length=1, max_length=limits.MAX_LIST_ITEMS), AfterValidator(_one_each)]
    message: Annotated[str, Field(min_length=1, max_length=limits.MAX_COMMIT_MESSAGE_CHARS, pattern=NOT_BLANK)]
    create_branch: bool = False
    base_branch: BranchName | None = None
    create_pr: bool = False
    pr_title: Annotated[str, Field(min_length=1, max_length=limits.MAX_PR_TITLE_CHARS, pattern=NOT_BLANK)] | None = None
    pr_body: Annotated[str, Field(max_length=limits.MAX_GITHUB_COMMENT_CHARS)] | None = None
    expected_sha: Annotated[str, Field(pattern=_SHA)] | None = None


class CommitView(ResponseModel):
    """As in the answer; `pr_url` only if a pull request was asked for."""

    success: Literal[True] = True
    sha: str
    url: str
    branch: str
    pr_url: str | None = None


class CommitAnswer(ResponseModel):
    success: Literal[True] = True
    commit: CommitView
    request_id: str
