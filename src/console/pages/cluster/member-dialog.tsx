import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { isReadOnly, noteLeaderlessRefusal } from '../../app/console-state.ts'
import { showToast } from '../../app/toasts.tsx'
import { Button } from '../../controls/button.tsx'
import { Dialog } from '../../controls/dialog.tsx'
import { TextField } from '../../controls/field.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import type { ClusterChangePlan, ClusterStatus } from '../../client/served-types.ts'
import {
  type ChangeVerb,
  requestMemberChange,
  type MemberStatusRow,
  fetchChangePlan,
  requestLeadershipTransfer,
} from './cluster-requests.ts'

interface MemberDialogProps {
  readonly member: MemberStatusRow
  readonly status: ClusterStatus
  readonly onClose: () => void
  readonly onDone: () => void
}

interface Planned {
  readonly verb: ChangeVerb
  readonly plan: ClusterChangePlan
}

/** Actions on a member. A change of voters first shows how it affects the cluster. */
export function MemberDialog(props: MemberDialogProps) {
  const { manage } = texts
  const planned = useSignal<Planned | null>(null)
  const typed = useSignal('')
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const { member, onClose, onDone } = props
  const attempt = (work: () => Promise<void>): void => {
    isBusy.value = true
    error.value = null
    work()
      .catch((refusal: unknown) => {
        noteLeaderlessRefusal(refusal)
        error.value = refusal
      })
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const choose = (verb: ChangeVerb): void =>
    attempt(async () => {
      planned.value = { verb, plan: await fetchChangePlan(verb, member.id) }
    })
  const finish = (text: string): void => {
    showToast(text)
    onDone()
    onClose()
  }
  const transfer = (): void =>
    attempt(async () => {
      await requestLeadershipTransfer(member.id)
      finish(manage.transferred(member.id))
    })
  const { value: chosen } = planned
  const apply = (): void =>
    attempt(async () => {
      if (chosen === null) return
      const { confirmation } = chosen.plan
      await requestMemberChange(chosen.verb, member.id, confirmation === null ? null : typed.value)
      finish(manage.done[chosen.verb](member.id))
    })
  const needsTyping = chosen !== null && chosen.plan.confirmation !== null
  const mayApply = !needsTyping || typed.value === chosen?.plan.confirmation
  return (
    <Dialog
      title={chosen === null ? manage.title(member.id) : manage.verbs[chosen.verb](member.id)}
      onClose={onClose}
      foot={
        <>
          <Button onClick={onClose}>{texts.cancel}</Button>
          {chosen === null ? null : (
            <Button
              kind={chosen.verb === 'remove' ? 'danger' : 'primary'}
              isBusy={isBusy.value}
              refused={mayApply ? null : manage.typeFirst}
              onClick={apply}
            >
              {manage.verbs[chosen.verb](member.id)}
            </Button>
          )}
        </>
      }
    >
      <FailureNotice error={error.value} />
      {chosen === null ? (
        <Choices {...props} isBusy={isBusy.value} choose={choose} transfer={transfer} />
      ) : (
        <Plan
          plan={chosen.plan}
          typed={typed.value}
          onTyped={(value) => {
            typed.value = value
          }}
        />
      )}
    </Dialog>
  )
}

function Choices(
  props: MemberDialogProps & {
    readonly isBusy: boolean
    readonly choose: (verb: ChangeVerb) => void
    readonly transfer: () => void
  },
) {
  const { manage, banner } = texts
  const { member, status, choose, transfer, isBusy } = props
  const isLearner = member.role === 'learner'
  const isLeader = member.id === status.leaderId
  const refused = isReadOnly.value ? banner.refused : null
  return (
    <ul class="choices">
      <Choice
        title={manage.transfer}
        what={manage.transferWhat}
        refused={refused ?? (isLeader ? manage.leadsAlready : isLearner ? manage.noVoter : null)}
        isBusy={isBusy}
        onChoose={transfer}
      />
      {isLearner ? (
        <Choice
          title={manage.verbs.promote(member.id)}
          what={manage.promoteWhat}
          refused={refused}
          isBusy={isBusy}
          onChoose={() => choose('promote')}
        />
      ) : (
        <Choice
          title={manage.verbs.demote(member.id)}
          what={manage.demoteWhat}
          refused={refused}
          isBusy={isBusy}
          onChoose={() => choose('demote')}
        />
      )}
      <Choice
        title={manage.verbs.remove(member.id)}
        what={manage.removeWhat}
        isDangerous
        refused={refused}
        isBusy={isBusy}
        onChoose={() => choose('remove')}
      />
    </ul>
  )
}

function Choice(props: {
  readonly title: string
  readonly what: string
  readonly refused: string | null
  readonly isBusy: boolean
  readonly isDangerous?: boolean
  readonly onChoose: () => void
}) {
  const { title, what, refused, isBusy, isDangerous = false, onChoose } = props
  return (
    <li>
      <button
        type="button"
        class="choice"
        aria-disabled={refused !== null || isBusy}
        onClick={() => {
          if (refused === null && !isBusy) onChoose()
        }}
      >
        <strong class={isDangerous ? 'danger' : ''}>
          {isDangerous ? <Icon name="trash" /> : null}
          {title}
        </strong>
        <span>{refused ?? what}</span>
      </button>
    </li>
  )
}

function Plan(props: {
  readonly plan: ClusterChangePlan
  readonly typed: string
  readonly onTyped: (value: string) => void
}) {
  const { manage } = texts
  const { plan, typed, onTyped } = props
  return (
    <div class="plan">
      <div class="plan-change">
        <Side title={manage.now} voters={plan.votersBefore} tolerance={plan.toleranceBefore} />
        <span class="faint" style={{ transform: 'rotate(180deg)' }}>
          <Icon name="back" size={20} />
        </span>
        <Side title={manage.then} voters={plan.votersAfter} tolerance={plan.toleranceAfter} />
      </div>
      {plan.isNeeded ? null : <Notice>{manage.notNeeded}</Notice>}
      {plan.warnings.map((warning) => (
        <Notice tone="warn" key={warning}>
          {warning}
        </Notice>
      ))}
      {plan.confirmation === null ? null : (
        <TextField
          label={manage.typeThis(plan.confirmation)}
          value={typed}
          isFocused
          onInput={onTyped}
        />
      )}
    </div>
  )
}

function Side(props: {
  readonly title: string
  readonly voters: readonly string[]
  readonly tolerance: number
}) {
  const { manage } = texts
  return (
    <div>
      <div class="tiny faint">{props.title}</div>
      <div class="small">{manage.toleranceOf(props.tolerance)}</div>
      <div class="tiny soft">{manage.votersOf(props.voters)}</div>
    </div>
  )
}
