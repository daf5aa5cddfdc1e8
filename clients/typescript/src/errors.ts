// Errors, as one class for each action that a caller can take.
//
// All errors except InvalidSignature have the server's problem document (RFC 9457). Its `type`
// decides the class. If the type is not one of Detent's, the status decides.

/** The problem document as the server sent it. */
export type Problem = Readonly<Record<string, unknown>>;

/** A call that failed. `message` is for people. */
export class DetentError extends Error {
  /** The problem document as the server sent it; empty without an answer. */
  readonly problem: Problem;
  /** Status of the answer; 0 without an answer. */
  readonly status: number;
  /** The reason, and the wrong field of the request ("" if no single field is wrong). */
  readonly detail: string;
  readonly field: string;
  /** The request was sent more than once. A NotFound or Conflict may then be the effect of the first
   *  request, whose answer was lost. */
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

/** The request is wrong: fix the request. */
export class InvalidArgument extends DetentError {}
/** The server requires an access token. */
export class Unauthorized extends DetentError {}
/** The access token does not have the scope for this. */
export class Forbidden extends DetentError {}
/** The object does not exist, or no longer exists. */
export class NotFound extends DetentError {}
/** The state of the object forbids this, or its key stands for another task: read it again. */
export class Conflict extends DetentError {}
/** The request exceeds a limit that `detail` names. */
export class TooLarge extends DetentError {}
/** A quota or the space is used up: the request may succeed later. */
export class ResourceExhausted extends DetentError {}
/** No answer, or no answer yet. The server may have carried the request out. */
export class Unavailable extends DetentError {}
/** Stored data cannot be read. */
export class DataLoss extends DetentError {}
/** An unexpected failure of the server, or an unreadable answer. */
export class Internal extends DetentError {}

/** A webhook that is not genuine, or too old: answer it with 4xx and ignore it. */
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
  502: Unavailable, // 502 and 504 come from a proxy that reaches no server
  503: Unavailable,
  504: Unavailable,
};

/** Returns the error for an answer with this status; `problem` may have any type. */
export function errorOf(status: number, problem: unknown): DetentError {
  const fields: Problem =
    typeof problem === 'object' && problem !== null ? (problem as Problem) : {};
  const other = status >= 400 && status < 500 ? InvalidArgument : Internal;
  const kind = byType[String(fields['type'])] ?? byStatus[status] ?? other;
  const detail = fields['detail'] ?? fields['title'] ?? `the server answered ${status}`;
  return new kind(String(detail), fields, status);
}
