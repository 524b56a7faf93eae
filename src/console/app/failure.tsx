import {
  ApiRefusalError,
  OutcomeUnknownError,
  UnreachableError,
} from '../../client/client-errors.ts'
import { Button, LinkButton } from '../controls/button.tsx'
import { EmptyState, Notice } from '../controls/status.tsx'
import { texts } from '../texts.ts'
import { faultText, withoutChangePosition } from './fault-text.ts'

/** One sentence about the error. */
export function failureText(error: unknown): string {
  const { failure } = texts
  if (error instanceof UnreachableError) return failure.unreachable
  if (error instanceof OutcomeUnknownError) return failure.outcomeUnknown
  if (!(error instanceof ApiRefusalError)) return failure.unexpected(String(error))
  if (error.status === 401) return failure.notAllowed
  if (error.code === 'CLUSTER_NO_LEADER') return failure.noLeader
  if (error.code === 'NODE_QUARANTINED') return failure.quarantined
  const { fault, message, detail } = error
  if (fault !== null) return texts.faults.at(withoutChangePosition(fault.field), faultText(fault))
  // Prefers the detail, because the general message says only that something is wrong.
  return detail === '' ? message : withoutChangePosition(detail)
}

/** Replaces a page that could not be loaded. */
export function Failure({
  error,
  retry,
  back,
}: {
  readonly error: unknown
  readonly retry?: () => void
  /** Link for a page whose record no longer exists. */
  readonly back?: { readonly href: string; readonly text: string }
}) {
  const { failure } = texts
  const isMissing = error instanceof ApiRefusalError && error.status === 404
  const isRefused = error instanceof ApiRefusalError && error.status === 401
  const title = isMissing ? failure.missingTitle : isRefused ? failure.refusedTitle : failure.title
  return (
    <EmptyState icon={isRefused ? 'key' : 'alert'} title={title}>
      <p role="alert">{isMissing ? failure.missing : failureText(error)}</p>
      {isMissing && back !== undefined ? (
        <LinkButton href={back.href}>{back.text}</LinkButton>
      ) : retry === undefined || isRefused ? null : (
        <Button onClick={retry}>{failure.retry}</Button>
      )}
    </EmptyState>
  )
}

/** Error notice that is shown together with data from an earlier load. */
export function FailureNotice({ error }: { readonly error: unknown }) {
  if (error === null || error === undefined) return null
  return <Notice tone="bad">{failureText(error)}</Notice>
}
