import type { JsonObject } from '../../../src/base/json.ts';
import { statusObject } from '../status-object.ts';

/** An answer other than 200, in the words of kube-apiserver 1.36. */
export class ApiError extends Error {
  readonly code: number;
  readonly status: JsonObject;

  constructor(code: number, reason: string, message: string, details?: JsonObject) {
    super(message);
    this.code = code;
    this.status = statusObject(code, reason, message, details);
  }
}

/** Thrown for a feature the stub does not have, so that no test that needs it passes by accident. */
export class NotSupported extends Error {}

/** How messages name a resource type: `widgets.example.com`, core types without a group. */
export function qualifiedName(type: { resource: string; group: string }): string {
  return type.group === '' ? type.resource : `${type.resource}.${type.group}`;
}

export interface Target {
  group: string;
  resource: string;
  name?: string | undefined;
}

export function notFound(target: Target): ApiError {
  const message = `${qualifiedName(target)} "${target.name}" not found`;
  return new ApiError(404, 'NotFound', message, details(target));
}

/** For a resource that the server does not know, in a group-version that it serves. */
export function noSuchResource(): ApiError {
  return new ApiError(404, 'NotFound', 'the server could not find the requested resource', {});
}

export function methodNotAllowed(): ApiError {
  const message = 'the server does not allow this method on the requested resource';
  return new ApiError(405, 'MethodNotAllowed', message, {});
}

export function unauthorized(): ApiError {
  return new ApiError(401, 'Unauthorized', 'Unauthorized');
}

export function badRequest(message: string): ApiError {
  return new ApiError(400, 'BadRequest', message);
}

export function forbidden(target: Target, why: string, causes?: JsonObject[]): ApiError {
  const name = target.name === undefined ? '' : ` "${target.name}"`;
  const message = `${qualifiedName(target)}${name} is forbidden: ${why}`;
  return new ApiError(403, 'Forbidden', message, {
    ...details(target),
    ...(causes === undefined ? {} : { causes }),
  });
}

export function conflict(target: Target, why: string): ApiError {
  const message = `Operation cannot be fulfilled on ${qualifiedName(target)} "${target.name}": ${why}`;
  return new ApiError(409, 'Conflict', message, details(target));
}

export function modified(target: Target): ApiError {
  return conflict(
    target,
    'the object has been modified; please apply your changes to the latest version and try again',
  );
}

/** A JSON Patch that does not apply, a failed `test` included; the server does not say which. */
export function patchRejected(): ApiError {
  const message = 'the server rejected our request due to an error in our request';
  return new ApiError(422, 'Invalid', message, {});
}

export function invalidField(
  target: Target & { kind: string },
  field: string,
  reason: 'FieldValueForbidden' | 'FieldValueInvalid',
  why: string,
): ApiError {
  const kind = target.group === '' ? target.kind : `${target.kind}.${target.group}`;
  const message = `${kind} "${target.name}" is invalid: ${field}: ${why}`;
  return new ApiError(422, 'Invalid', message, {
    ...details({ ...target, resource: target.kind }),
    causes: [{ reason, message: why, field }],
  });
}

export function continueExpired(freshToken: string): ApiError {
  const error = new ApiError(
    410,
    'Expired',
    'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.',
  );
  error.status['metadata'] = { continue: freshToken };
  return error;
}

export function versionExpired(asked: number, oldest: number): ApiError {
  return new ApiError(410, 'Expired', `too old resource version: ${asked} (${oldest})`);
}

export function notAcceptable(): ApiError {
  const message =
    'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf';
  return new ApiError(406, 'NotAcceptable', message);
}

function details(target: Target): JsonObject {
  return {
    ...(target.name === undefined ? {} : { name: target.name }),
    ...(target.group === '' ? {} : { group: target.group }),
    kind: target.resource,
  };
}
