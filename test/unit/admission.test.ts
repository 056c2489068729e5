import { describe, expect, test } from 'vitest';
import {
  type AdmissionError,
  admissionDraft,
  deadUpdateWebhooks,
  matchesLabels,
  matchesRules,
} from '../../src/diagnose/admission.ts';
import { classifyErrorText } from '../../src/diagnose/error-texts.ts';
import { failed, read } from '../../src/model/read.ts';
import type { LabelRequirement, WebhookFacts } from '../../src/model/snapshot.ts';
import {
  DEMO,
  detailsOf,
  failureOf,
  namespaceFacts,
  service,
  view,
  WIDGETS,
  webhook,
} from './snapshots.ts';

describe('matchesLabels', () => {
  const requirement = (key: string, operator: string, ...values: string[]): LabelRequirement => ({
    key,
    operator,
    values,
  });

  test.each<{ requirements: LabelRequirement[]; labels: Record<string, string>; is: boolean }>([
    { requirements: [], labels: {}, is: true },
    { requirements: [], labels: { a: '1' }, is: true },
    { requirements: [requirement('a', 'In', '1', '2')], labels: { a: '2' }, is: true },
    { requirements: [requirement('a', 'In', '1')], labels: { a: '2' }, is: false },
    { requirements: [requirement('a', 'In', '1')], labels: {}, is: false },
    { requirements: [requirement('a', 'In')], labels: { a: '1' }, is: false },
    { requirements: [requirement('a', 'In', '')], labels: { a: '' }, is: true },
    { requirements: [requirement('a', 'NotIn', '1')], labels: { a: '2' }, is: true },
    { requirements: [requirement('a', 'NotIn', '1')], labels: { a: '1' }, is: false },
    { requirements: [requirement('a', 'NotIn', '1')], labels: {}, is: true },
    { requirements: [requirement('a', 'Exists')], labels: { a: '' }, is: true },
    { requirements: [requirement('a', 'Exists')], labels: {}, is: false },
    { requirements: [requirement('a', 'DoesNotExist')], labels: {}, is: true },
    { requirements: [requirement('a', 'DoesNotExist')], labels: { a: '1' }, is: false },
    {
      requirements: [requirement('a', 'Exists'), requirement('b', 'DoesNotExist')],
      labels: { a: '1', b: '2' },
      is: false,
    },
    { requirements: [requirement('a', 'SomethingNew', '1')], labels: { a: '1' }, is: false },
    { requirements: [requirement('constructor', 'Exists')], labels: {}, is: false },
    { requirements: [requirement('toString', 'DoesNotExist')], labels: {}, is: true },
  ])('$requirements on $labels: $is', ({ requirements, labels, is }) => {
    expect(matchesLabels(requirements, labels)).toBe(is);
  });
});

describe('matchesRules', () => {
  const rule = (apiGroups: string[], resources: string[], operations: string[]) =>
    webhook({ rules: [{ apiGroups, resources, operations }] });

  test.each<{ what: string; facts: WebhookFacts; is: boolean }>([
    { what: 'exactly', facts: rule(['example.com'], ['widgets'], ['UPDATE']), is: true },
    { what: 'any operation', facts: rule(['example.com'], ['widgets'], ['*']), is: true },
    {
      what: 'another operation',
      facts: rule(['example.com'], ['widgets'], ['CREATE', 'DELETE']),
      is: false,
    },
    { what: 'any group', facts: rule(['*'], ['widgets'], ['UPDATE']), is: true },
    { what: 'another group', facts: rule(['apps'], ['widgets'], ['UPDATE']), is: false },
    {
      what: 'the core group is not any group',
      facts: rule([''], ['widgets'], ['UPDATE']),
      is: false,
    },
    { what: 'any resource', facts: rule(['example.com'], ['*'], ['UPDATE']), is: true },
    { what: 'any resource and subresource', facts: rule(['*'], ['*/*'], ['*']), is: true },
    { what: 'another resource', facts: rule(['*'], ['gadgets'], ['*']), is: false },
    {
      what: 'a subresource only',
      facts: rule(['example.com'], ['widgets/status'], ['UPDATE']),
      is: false,
    },
    {
      what: 'any subresource of it',
      facts: rule(['example.com'], ['*/status'], ['UPDATE']),
      is: false,
    },
    {
      what: 'the resource and its subresources',
      facts: rule(['example.com'], ['widgets/*'], ['UPDATE']),
      is: true,
    },
    { what: 'no rules', facts: webhook({ rules: [] }), is: false },
    {
      what: 'the second of two rules',
      facts: webhook({
        rules: [
          { apiGroups: ['apps'], resources: ['*'], operations: ['*'] },
          { apiGroups: ['example.com'], resources: ['widgets'], operations: ['UPDATE'] },
        ],
      }),
      is: true,
    },
  ])('$what: $is', ({ facts, is }) => {
    expect(matchesRules(facts, 'UPDATE', WIDGETS)).toBe(is);
  });
});

describe('deadUpdateWebhooks', () => {
  const gone = service('ops/guard', undefined);
  const there = service('ops/guard', { app: 'guard' });
  const found = (
    facts: WebhookFacts,
    services = gone,
    labels: { ofNamespace?: Record<string, string>; ofObject?: Record<string, string> } = {},
  ): string[] =>
    deadUpdateWebhooks(
      view({
        namespace: namespaceFacts({ labels: labels.ofNamespace ?? {} }),
        details: detailsOf({ webhooks: read([facts]), services }),
      }),
      WIDGETS,
      labels.ofObject ?? {},
    ).map(({ code, subject }) => `${code} ${subject.kind}/${subject.name}`);
  const blamed = ['admission-webhook-failing ValidatingWebhookConfiguration/guard'];
  const only = (key: string): LabelRequirement[] => [{ key, operator: 'Exists', values: [] }];

  test.each<{ what: string; now: string[]; are: string[] }>([
    { what: 'its Service is gone', now: found(webhook()), are: blamed },
    { what: 'its Service is there', now: found(webhook(), there), are: [] },
    {
      what: 'its Service could not be read',
      now: found(webhook(), { 'ops/guard': failed(failureOf()) }),
      are: [],
    },
    { what: 'nobody looked for its Service', now: found(webhook(), {}), are: [] },
    { what: 'it fails open', now: found(webhook({ failurePolicy: 'Ignore' })), are: [] },
    {
      what: 'it is called by URL',
      now: found(webhook({ service: undefined, url: 'https://x/y' })),
      are: [],
    },
    {
      what: 'CEL decides, which cannot be judged here',
      now: found(webhook({ hasMatchConditions: true })),
      are: [],
    },
    { what: 'it is about other types', now: found(webhook({ rules: [] })), are: [] },
    {
      what: 'it is about other namespaces',
      now: found(webhook({ namespaceSelector: only('prod') })),
      are: [],
    },
    {
      what: 'it is about this namespace',
      now: found(webhook({ namespaceSelector: only('env') }), gone, {
        ofNamespace: { env: 'preview' },
      }),
      are: blamed,
    },
    {
      what: 'it is about other objects',
      now: found(webhook({ objectSelector: only('guarded') })),
      are: [],
    },
    {
      what: 'it is about this object',
      now: found(webhook({ objectSelector: only('guarded') }), gone, { ofObject: { guarded: '' } }),
      are: blamed,
    },
  ])('$what: $are', ({ now, are }) => {
    expect(now).toEqual(are);
  });

  test('says nothing when webhook configurations could not be read', () => {
    const blind = view({ details: detailsOf({ webhooks: failed(failureOf()), services: gone }) });
    expect(deadUpdateWebhooks(blind, WIDGETS, {})).toEqual([]);
  });
});

describe('admissionDraft', () => {
  const error = (text: string): AdmissionError => classifyErrorText(text)[0] as AdmissionError;
  const UNREACHABLE =
    'Internal error occurred: failed calling webhook "guard.example.com": failed to call webhook: Post "https://hooks.preview-7.svc:443/x?timeout=5s": service "hooks" not found';

  test('names the configuration of the webhook that the error names', () => {
    const here = view({
      details: detailsOf({ webhooks: read([webhook({ name: 'other' }), webhook()]) }),
    });
    const draft = admissionDraft(here, error(UNREACHABLE), 'DELETE of its content');
    expect(draft.subject.name).toBe('guard');
    expect(draft.message).toContain('webhook guard.example.com');
    expect(draft.scope).toBe('cluster');
  });

  test('takes the Service from the error when no configuration could be read, and says so', () => {
    const draft = admissionDraft(view(), error(UNREACHABLE), 'DELETE of its content');
    expect(draft.subject.name).toBe('guard.example.com');
    expect(draft.evidence.join()).toContain('could not be read');
    expect(draft).toMatchObject({ scope: 'namespace' });
    expect(draft.waitsForNamespace).toContain(`Service ${DEMO}/hooks`);
  });

  test.each([
    {
      text: 'admission webhook "guard.example.com" denied the request: kept for ten years',
      subject: 'guard.example.com',
      message: 'denies DELETE: kept for ten years',
    },
    {
      text: 'admission webhook "guard.example.com" denied the request without explanation',
      subject: 'guard.example.com',
      message: 'denies DELETE: without explanation',
    },
    {
      text: `secrets "x" is forbidden: ValidatingAdmissionPolicy 'keep' with binding 'all' denied request: no`,
      subject: 'keep',
      message: 'denies DELETE: no',
    },
  ])('quotes who says no: $message', ({ text, subject, message }) => {
    const draft = admissionDraft(view(), error(text), 'DELETE');
    expect(draft).toMatchObject({ code: 'admission-denied', message, subject: { name: subject } });
    expect(draft.evidence).toEqual([text]);
  });
});
