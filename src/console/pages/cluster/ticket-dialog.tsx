import { useSignal } from '@preact/signals'

import { downloadText } from '../../app/download.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { noteLeaderlessRefusal } from '../../app/console-state.ts'
import { Button } from '../../controls/button.tsx'
import { CopyText } from '../../controls/copy.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { Field } from '../../controls/field.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import type { ClusterInvitationDetail } from '../../client/served-types.ts'
import { useLoadedData } from '../../app/loaded.ts'
import { countVoters, requestInvitation, failureTolerance } from './cluster-requests.ts'

const HOUR_MS = 3_600_000

/**
 * Creates a ticket with which one new controller can join. The ticket is shown once and not stored.
 */
export function TicketDialog({
  selfId,
  onClose,
}: {
  readonly selfId: string
  readonly onClose: () => void
}) {
  const { ticket } = texts
  const made = useSignal<ClusterInvitationDetail | null>(null)
  const isVoter = useSignal(true)
  const voters = useLoadedData('voters', () => countVoters(selfId))
  const hours = useSignal(1)
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const make = (): void => {
    isBusy.value = true
    error.value = null
    requestInvitation(isVoter.value, hours.value * HOUR_MS)
      .then((found) => {
        made.value = found
      })
      .catch((refusal: unknown) => {
        noteLeaderlessRefusal(refusal)
        error.value = refusal
      })
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const { value: shown } = made
  return (
    <Dialog
      title={ticket.title}
      onClose={onClose}
      foot={
        shown === null ? (
          <>
            <Button onClick={onClose}>{texts.cancel}</Button>
            <Button kind="primary" isBusy={isBusy.value} onClick={make}>
              {ticket.make}
            </Button>
          </>
        ) : (
          <Button kind="primary" onClick={onClose}>
            {ticket.done}
          </Button>
        )
      }
    >
      <FailureNotice error={error.value} />
      {shown === null ? (
        <>
          <p class="soft">{ticket.lead}</p>
          <label class="check">
            <input
              type="checkbox"
              checked={isVoter.value}
              onChange={(event) => (isVoter.value = event.currentTarget.checked)}
            />
            <span>
              {ticket.voter}
              <span class="hint" style={{ display: 'block' }}>
                {ticket.voterHint}
              </span>
            </span>
          </label>
          {isVoter.value && voters.data.value !== null ? (
            <Effect voters={voters.data.value + 1} />
          ) : null}
          <Field label={ticket.lifetime}>
            {(ids) => (
              <select
                {...ids}
                class="input"
                value={hours.value}
                onChange={(event) => (hours.value = Number(event.currentTarget.value))}
              >
                {ticket.lifetimes.map(([value, text]) => (
                  <option key={value} value={value}>
                    {text}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </>
      ) : (
        <>
          <Notice tone="warn">{ticket.once}</Notice>
          <Button icon="backup" onClick={() => downloadText('ticket', shown.ticket)}>
            {ticket.download}
          </Button>
          <CopyText label={ticket.ticket} text={shown.ticket} />
          <CopyText label={ticket.command} text={ticket.commandText} />
        </>
      )}
    </Dialog>
  )
}

/** The failure tolerance with one more voter, and a warning if it stays the same. */
function Effect({ voters }: { readonly voters: number }) {
  const { ticket } = texts
  const tolerated = failureTolerance(voters)
  return tolerated > failureTolerance(voters - 1) ? (
    <p class="soft small">{ticket.gain(voters, tolerated)}</p>
  ) : (
    <Notice tone="warn">{ticket.noGain(voters, tolerated)}</Notice>
  )
}
