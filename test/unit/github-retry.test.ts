import { describe, expect, test } from 'vitest';
import { type Attempt, isRateLimited, retryPauseMs } from '../../src/publish/github-retry.ts';

const NOW = Date.parse('2026-03-02T10:00:00Z');

function attempt(given: Partial<Attempt>): Attempt {
  return { method: 'GET', status: 500, headers: {}, message: '', networkCode: undefined, ...given };
}

const inSeconds = (seconds: number): string => String(NOW / 1_000 + seconds);

describe('the pause before another try', () => {
  test.each<{ what: string; given: Partial<Attempt>; pause: number | undefined }>([
    { what: 'a server error', given: { status: 502 }, pause: 1_000 },
    { what: 'no answer', given: { status: undefined, networkCode: 'ECONNRESET' }, pause: 1_000 },
    { what: 'no answer in time', given: { status: undefined }, pause: 1_000 },
    {
      what: 'a refusal',
      given: { status: 403, message: 'Resource not accessible' },
      pause: undefined,
    },
    { what: 'nothing there', given: { status: 404 }, pause: undefined },
    { what: 'a bad request', given: { status: 422 }, pause: undefined },
    { what: 'too often', given: { status: 429, headers: { 'retry-after': '5' } }, pause: 5_000 },
    {
      what: 'too often, at once',
      given: { status: 429, headers: { 'retry-after': '0' } },
      pause: 1_000,
    },
    {
      what: 'a secondary limit',
      given: { status: 403, headers: { 'retry-after': '7' } },
      pause: 7_000,
    },
    {
      what: 'a secondary limit without a time: a minute is too long',
      given: { status: 403, message: 'You have exceeded a secondary rate limit' },
      pause: undefined,
    },
    {
      what: 'a primary limit that is over soon',
      given: {
        status: 403,
        headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(12) },
      },
      pause: 12_000,
    },
    {
      what: 'a primary limit that is over in an hour',
      given: {
        status: 403,
        headers: { 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': inSeconds(3_600) },
      },
      pause: undefined,
    },
    {
      what: 'longer than all of our time',
      given: { status: 429, headers: { 'retry-after': '31' } },
      pause: undefined,
    },
    {
      what: 'a time that is none',
      given: { status: 429, headers: { 'retry-after': 'soon' } },
      pause: undefined,
    },
    // A second POST would be a second comment.
    {
      what: 'a lost POST',
      given: { method: 'POST', status: undefined, networkCode: 'ECONNRESET' },
      pause: undefined,
    },
    { what: 'a failed POST', given: { method: 'POST', status: 502 }, pause: undefined },
    {
      what: 'a POST never sent',
      given: { method: 'POST', status: undefined, networkCode: 'ECONNREFUSED' },
      pause: 1_000,
    },
    {
      what: 'a POST too often',
      given: { method: 'POST', status: 429, headers: { 'retry-after': '2' } },
      pause: 2_000,
    },
    { what: 'a failed PATCH', given: { method: 'PATCH', status: 503 }, pause: 1_000 },
  ])('$what: $pause', ({ given, pause }) => {
    expect(retryPauseMs(attempt(given), 1, 0, NOW)).toBe(pause);
  });

  test.each([
    { tries: 1, waited: 0, pause: 1_000 },
    { tries: 2, waited: 1_000, pause: 2_000 },
    { tries: 3, waited: 3_000, pause: 4_000 },
    { tries: 4, waited: 7_000, pause: undefined },
    { tries: 3, waited: 28_000, pause: undefined },
  ])('after $tries tries and $waited ms of waiting: $pause', ({ tries, waited, pause }) => {
    expect(retryPauseMs(attempt({ status: 500 }), tries, waited, NOW)).toBe(pause);
  });
});

test.each([
  { status: 429, message: '', is: true },
  { status: 403, message: 'API rate limit exceeded for installation', is: true },
  { status: 403, message: 'Resource not accessible by integration', is: false },
  { status: 500, message: 'rate limit', is: false },
])('$status "$message" is a limit: $is', ({ status, message, is }) => {
  expect(isRateLimited(attempt({ status, message }))).toBe(is);
});
