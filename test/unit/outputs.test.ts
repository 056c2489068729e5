import { describe, expect, test } from 'vitest';
import { OUTPUTS, outputsOf } from '../../src/outputs.ts';
import { viewOf } from '../../src/report/view.ts';
import {
  deadApiService,
  deadlock,
  forced,
  gone,
  notSeen,
  runOf,
  settled,
  severalCauses,
} from '../stub/results.ts';

const WHERE = {
  reportJsonPath: '/r/report.json',
  reportMarkdownPath: '/r/report.md',
};

describe('outputs', () => {
  test('of a hang name what blocks', () => {
    const outputs = outputsOf(viewOf(runOf([deadlock()])), WHERE, 302_400);
    expect({ ...outputs, blockers: JSON.parse(outputs.blockers) }).toEqual({
      outcome: 'stuck',
      outcomes: '{"preview-pr-42":"stuck"}',
      'elapsed-seconds': '302',
      'root-cause':
        'Widget db is held by finalizer widgets.example.com/cleanup; its controller, Deployment widget-operator, was in this namespace and has been deleted with it, so nobody is left to remove widgets.example.com/cleanup',
      'summary-text':
        'preview-pr-42 is stuck: Widget db is held by finalizer widgets.example.com/cleanup; its controller, Deployment widget-operator, was in this namespace and has been deleted with it, so nobody is left to remove widgets.example.com/cleanup',
      blockers: [
        {
          namespace: 'preview-pr-42',
          code: 'object-finalizer',
          subject: {
            apiVersion: 'example.com/v1',
            kind: 'Widget',
            namespace: 'preview-pr-42',
            name: 'db',
          },
          finalizer: 'widgets.example.com/cleanup',
          message: 'is held by finalizer widgets.example.com/cleanup',
          count: 1,
          rootCause: false,
        },
      ],
      'blocking-finalizer': 'widgets.example.com/cleanup',
      'blocking-resource': 'Widget/db',
      'blocking-apiservice': '',
      'left-behind': '[]',
      'report-json': '/r/report.json',
      'report-markdown': '/r/report.md',
      'comment-url': '',
      forced: 'false',
    });
  });

  test('of a namespace that went say what still points into it', () => {
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      name: 'pv-1',
      why: 'spec.claimRef',
    };
    const left = { ...gone('a'), leftBehind: [{ ...volume, breaksOthers: false, isGoing: false }] };
    const outputs = outputsOf(viewOf(runOf([left])), WHERE, 38_000);
    expect(JSON.parse(outputs['left-behind'])).toEqual([{ namespace: 'a', ...volume }]);
  });

  test('of a success are all there, and empty where nothing blocks', () => {
    expect(outputsOf(viewOf(runOf([gone('a')])), WHERE, 38_000)).toMatchObject({
      outcome: 'deleted',
      outcomes: '{"a":"deleted"}',
      'root-cause': '',
      'summary-text': 'a was gone after 38 s',
      blockers: '[]',
      'blocking-finalizer': '',
      'blocking-resource': '',
      'blocking-apiservice': '',
      forced: 'false',
    });
  });

  test('of a run that could not work say "error" and have every name', () => {
    const outputs = outputsOf(
      undefined,
      { ...WHERE, reportJsonPath: '', reportMarkdownPath: '' },
      900,
    );
    expect(Object.keys(outputs)).toEqual(Object.keys(OUTPUTS));
    expect(outputs).toMatchObject({
      outcome: 'error',
      outcomes: '{}',
      blockers: '[]',
      'report-json': '',
    });
  });

  test.each([
    {
      what: 'a dead add-on',
      run: runOf([deadApiService()]),
      finalizer: '',
      resource: '',
      apiservice: 'v1beta1.metrics.k8s.io',
    },
    {
      what: 'several causes',
      run: runOf([severalCauses()]),
      finalizer: 'finalizers.kubesphere.io/namespaces',
      resource: '',
      apiservice: 'v1beta1.metrics.k8s.io',
    },
    {
      what: 'nothing that could be seen',
      run: runOf([notSeen()]),
      finalizer: '',
      resource: '',
      apiservice: '',
    },
  ])('name the first of each: $what', ({ run, finalizer, resource, apiservice }) => {
    expect(outputsOf(viewOf(run), WHERE, 0)).toMatchObject({
      'blocking-finalizer': finalizer,
      'blocking-resource': resource,
      'blocking-apiservice': apiservice,
    });
  });

  test('tell that something was forced', () => {
    expect(outputsOf(viewOf(runOf([gone('a'), forced()])), WHERE, 0).forced).toBe('true');
  });

  test('of several namespaces count those that did not pass', () => {
    const run = runOf([gone('a'), deadlock(), settled('not-terminating', 'fail')]);
    const outputs = outputsOf(viewOf(run), WHERE, 0);
    expect(outputs['summary-text']).toMatch(
      /^2 of 3 namespaces did not pass \(\d+ s\): preview-pr-42 is stuck: /,
    );
    expect(Object.keys(JSON.parse(outputs.outcomes))).toEqual(['a', 'preview-pr-42']);
  });

  test('of several namespaces that went say so', () => {
    const outputs = outputsOf(viewOf(runOf([gone('a'), gone('b')])), WHERE, 0);
    expect(outputs['summary-text']).toBe('All 2 namespaces were gone after 38 s');
  });
});
