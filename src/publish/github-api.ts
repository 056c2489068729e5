import type { Read } from '../model/read.ts';

/** What the gate needs of GitHub, or of a server that speaks its language. Never throws. */
export interface GithubApi {
  /** "owner/name" of the repository that the workflow runs in. */
  readonly repository: string;
  /** Login that belongs to the token; a failure where the server does not tell. */
  viewer(signal?: AbortSignal): Promise<Read<string>>;
  /** Comments whose text starts with `prefix`, oldest first, from all pages. */
  comments(issue: number, prefix: string, signal?: AbortSignal): Promise<Read<Comment[]>>;
  createComment(issue: number, body: string, signal?: AbortSignal): Promise<Read<Comment>>;
  updateComment(id: number, body: string, signal?: AbortSignal): Promise<Read<Comment>>;
  deleteComment(id: number, signal?: AbortSignal): Promise<Read<true>>;
  pull(number: number, signal?: AbortSignal): Promise<Read<PullRequest>>;
  pullsOfCommit(sha: string, signal?: AbortSignal): Promise<Read<PullRequest[]>>;
  /** Pull requests from a branch; servers that cannot filter return more than asked for. */
  pullsOfBranch(owner: string, branch: string, signal?: AbortSignal): Promise<Read<PullRequest[]>>;
}

export interface Comment {
  id: number;
  /** Its address for people. */
  url: string;
  body: string;
  author: string;
  /** "Bot", "User"; undefined on servers that do not tell. */
  authorType: string | undefined;
}

export interface PullRequest {
  number: number;
  /** "owner/name" of the repository it wants to change. */
  baseRepository: string;
  headSha: string;
  headRef: string;
  headOwner: string;
  isMerged: boolean;
  mergeCommitSha: string | undefined;
}
