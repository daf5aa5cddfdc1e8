// What goes wrong, as one class for each thing that a caller can do about it.
//
// All but InvalidSignature carry the server's problem document (RFC 9457); its `type` decides the
// class, and where it has none of Detent's the status does.

/** As the server said it. */
export type Problem = Readonly<Record<string, unknown>>;

/** A call that was not done. `message` is for people. */
export class DetentError extends Error {
  /** As the server said it; empty when there was no answer. */
  readonly problem: Problem;
  /** Of the answer; 0 when there was none. */
  readonly status: number;
  /** What is wrong, and in which field of the request ("" when in none). */
  readonly detail: string;
  readonly field: string;
  /** The request was sent more than once. A NotFound or Conflict may then be the effect of the first
   *  time, whose answer was lost. */
  isRepeated = false;

  constructor(detail: string, problem: Problem = {}, status = 0, options?: ErrorOptions) {
    const field = typeof problem['field'] === 'string' ? problem['field'] : '';
    super(field ? `${field}: ${detail}` : detail, options);
    this.name = new.target.name;
    this.problem = problem;
    this.status = status;
    this.detail = detail;
    this.field = field;
  }
}

/** The request is wrong: fix it. */
export class InvalidArgument extends DetentError {}
/** The server wants a token. */
export class Unauthorized extends DetentError {}
/** Not with this token. */
export class Forbidden extends DetentError {}
/** It is not there, or not any more. */
export class NotFound extends DetentError {}
/** Its state forbids this, or its key stands for another task: read it again. */
export class Conflict extends DetentError {}
/** Over a limit that `detail` states. */
export class TooLarge extends DetentError {}
/** Over a quota or out of space: later may succeed. */
export class ResourceExhausted extends DetentError {}
/** No answer, or none yet. What was to be changed may have been changed. */
export class Unavailable extends DetentError {}
/** What was stored cannot be read back. */
export class DataLoss extends DetentError {}
/** An unexpected failure of the server, or an answer that is none. */
export class Internal extends DetentError {}

/** A webhook that is not genuine, or not fresh: answer it 4xx and do nothing. */
export class InvalidSignature extends Error {
  override name = 'InvalidSignature';
}

type Kind = new (detail: string, problem: Problem, status: number) => DetentError;

const byType: Readonly<Record<string, Kind>> = {
  'urn:detent:error:invalid_argument': InvalidArgument,
  'urn:detent:error:forbidden': Forbidden,
  'urn:detent:error:not_found': NotFound,
  'urn:detent:error:conflict': Conflict,
  'urn:detent:error:too_large': TooLarge,
  'urn:detent:error:resource_exhausted': ResourceExhausted,
  'urn:detent:error:unavailable': Unavailable,
  'urn:detent:error:data_loss': DataLoss,
  'urn:detent:error:internal': Internal,
};
const byStatus: Readonly<Record<number, Kind>> = {
  401: Unauthorized,
  403: Forbidden,
  404: NotFound,
  408: Unavailable,
  409: Conflict,
  412: Conflict,
  413: TooLarge,
  429: ResourceExhausted,
  502: Unavailable, // this and 504: of a proxy that reaches no server
  503: Unavailable,
  504: Unavailable,
};

/** The error that an answer of this status says; `problem` may be anything. */
export function errorOf(status: number, problem: unknown): DetentError {
  const fields: Problem =
    typeof problem === 'object' && problem !== null ? (problem as Problem) : {};
  const other = status >= 400 && status < 500 ? InvalidArgument : Internal;
  const kind = byType[String(fields['type'])] ?? byStatus[status] ?? other;
  const detail = fields['detail'] ?? fields['title'] ?? `the server answered ${status}`;
  return new kind(String(detail), fields, status);
}
