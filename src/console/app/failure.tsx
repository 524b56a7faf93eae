import { ApiProblem, OutcomeUnknownError, UnreachableError } from '../../client/problem.ts'
import { Button } from '../controls/button.tsx'
import { Empty, Notice } from '../controls/status.tsx'
import { texts } from '../texts.ts'

/** One sentence about the error. */
export function failureText(error: unknown): string {
  const { failure } = texts
  if (error instanceof UnreachableError) return failure.unreachable
  if (error instanceof OutcomeUnknownError) return failure.outcomeUnknown
  if (!(error instanceof ApiProblem)) return failure.unexpected(String(error))
  if (error.status === 401) return failure.notAllowed
  if (error.code === 'CLUSTER_NO_LEADER') return failure.noLeader
  if (error.code === 'NODE_QUARANTINED') return failure.quarantined
  const { fault, message, detail } = error
  const sentence = detail === '' || detail === message ? message : `${message}: ${detail}`
  return fault === null ? sentence : `${sentence} (${fault.field}: ${fault.reason})`
}

/** Replaces a page that could not be loaded. */
export function Failure({
  error,
  retry,
}: {
  readonly error: unknown
  readonly retry?: () => void
}) {
  const { failure } = texts
  const isMissing = error instanceof ApiProblem && error.status === 404
  const isRefused = error instanceof ApiProblem && error.status === 401
  const title = isMissing ? failure.missingTitle : isRefused ? failure.refusedTitle : failure.title
  return (
    <Empty icon={isRefused ? 'key' : 'alert'} title={title}>
      <p role="alert">{isMissing ? failure.missing : failureText(error)}</p>
      {retry === undefined || isRefused ? null : <Button onClick={retry}>{failure.retry}</Button>}
    </Empty>
  )
}

/** Shown beside data that was loaded earlier. */
export function FailureNotice({ error }: { readonly error: unknown }) {
  if (error === null || error === undefined) return null
  return <Notice tone="bad">{failureText(error)}</Notice>
}
