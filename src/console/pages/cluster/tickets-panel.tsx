import { useSignal } from '@preact/signals'

import { isReadOnly } from '../../app/console-state.ts'
import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { ConfirmDialog } from '../../app/confirm-dialog.tsx'
import type { ClusterTicketDetail } from '../../client/served-types.ts'
import { Button } from '../../controls/button.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { fetchTickets, requestTicketRevocation } from './cluster-requests.ts'

const REFRESH_MS = 5_000

/** Tickets with which controllers can still join; nothing if there are none. */
export function TicketsPanel({ refused }: { readonly refused: string | null }) {
  const { ticket } = texts
  const loaded = useLoadedData('tickets', fetchTickets, REFRESH_MS)
  const revoking = useSignal<ClusterTicketDetail | null>(null)
  const { value: tickets } = loaded.data
  if (tickets === null || tickets.length === 0) {
    // Without a leader, the banner gives the reason.
    return isReadOnly.value ? null : <FailureNotice error={loaded.error.value} />
  }
  return (
    <section class="panel" aria-labelledby="tickets">
      <div class="panel-head">
        <h2 id="tickets">{ticket.outstanding}</h2>
        <span class="faint small">{ticket.outstandingHint}</span>
      </div>
      <div class="table-wrap" tabIndex={0} role="group" aria-label={ticket.outstanding}>
        <table class="table even">
          <thead>
            <tr>
              <th scope="col">{ticket.ticket}</th>
              <th scope="col">{texts.cluster.role}</th>
              <th scope="col">{ticket.created}</th>
              <th scope="col">{ticket.expires}</th>
              <th scope="col" class="actions">
                <span class="visually-hidden">{texts.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {tickets.map((one) => (
              <tr key={one.id}>
                <th scope="row" class="mono">
                  {one.id}
                </th>
                <td>{one.isVoter ? ticket.kinds.voter : ticket.kinds.learner}</td>
                <td>
                  <Time at={new Date(one.createdAtMs).toISOString()} />
                </td>
                <td>
                  <Time at={new Date(one.expiresAtMs).toISOString()} />
                </td>
                <td class="actions">
                  <Button kind="quiet" refused={refused} onClick={() => (revoking.value = one)}>
                    {ticket.revoke}
                    <span class="visually-hidden"> {one.id}</span>
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {revoking.value === null ? null : (
        <RevokeDialog
          id={revoking.value.id}
          onClose={() => (revoking.value = null)}
          onDone={loaded.reload}
        />
      )}
    </section>
  )
}

function RevokeDialog(props: {
  readonly id: string
  readonly onClose: () => void
  readonly onDone: () => void
}) {
  const { ticket } = texts
  return (
    <ConfirmDialog
      title={ticket.revokeTitle}
      verb={ticket.revoke}
      isDangerous
      run={() => requestTicketRevocation(props.id)}
      done={ticket.revoked}
      onClose={props.onClose}
      onDone={props.onDone}
    >
      <p class="soft">{ticket.revokeWhat}</p>
      <p class="mono">{props.id}</p>
    </ConfirmDialog>
  )
}
