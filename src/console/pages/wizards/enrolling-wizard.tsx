import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'

import { FailureNotice } from '../../app/failure.tsx'
import { useLoadedData } from '../../app/loaded.ts'
import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { Button, LinkButton } from '../../controls/button.tsx'
import { CheckedForm } from '../../controls/checked-form.tsx'
import { Field, TextField } from '../../controls/field.tsx'
import { Notice } from '../../controls/status.tsx'
import { texts } from '../../texts.ts'
import { useDraftSignal } from '../records/drafts.ts'
import { findKindAtPath } from '../records/kinds.ts'
import { collectionApiPath, readRecord, writeRecord } from '../records/record-data.ts'
import { recordState } from '../records/record-state.tsx'
import { RolesInput } from '../records/reference-inputs.tsx'
import { TokenCard } from './token-card.tsx'
import { useMissingPermissionReason } from './missing-permission.ts'
import { CancelWizard, WizardHead } from './wizard-head.tsx'

/** A token with which a new record enrolls, and the token's expiry. */
export interface RecordEnrollmentToken {
  readonly jwt: string
  readonly expiresAt: string
}

interface EnrollingWizardProps {
  readonly name: 'identity' | 'router'
  readonly kind: 'identities' | 'edge-routers'
  readonly words: {
    readonly nameHint: string
    readonly make: string
    readonly open: string
  }
  /** The body of the new record. */
  readonly bodyOf: (
    name: string,
    roleAttributes: readonly string[],
  ) => Readonly<Record<string, unknown>>
  readonly tokenIn: (record: object) => RecordEnrollmentToken
  /** Further fields of the form. */
  readonly children?: ComponentChildren
  /** Content next to the button of the form. */
  readonly more?: ComponentChildren
}

/** The steps from the form until the record is online. */
function StepLine({ current }: { readonly current: number }) {
  const { stepLine, enrollSteps } = texts.wizards
  return (
    <ol class="step-line small" aria-label={stepLine}>
      {enrollSteps.map((step, at) => (
        <li key={step} aria-current={at === current ? 'step' : undefined}>
          {step}
        </li>
      ))}
    </ol>
  )
}

const POLL_MS = 3_000

/** Whether the new identity has enrolled, or the new router is online; false without an ID. */
function useArrival(kind: EnrollingWizardProps['kind'], id: string): boolean {
  const hasArrived = useSignal(false)
  useLoadedData(
    `arrival/${id}`,
    async (signal) => {
      if (id === '' || hasArrived.value) return
      const state = recordState(kind, (await readRecord(kind, id, signal)).record)
      hasArrived.value = kind === 'identities' ? state !== 'notEnrolled' : state === 'online'
    },
    POLL_MS,
  )
  useEffect(() => void (hasArrived.value = false), [id])
  return hasArrived.value
}

/** Says whether the new identity has enrolled, or the new router is online. */
function Arrival(props: {
  readonly kind: EnrollingWizardProps['kind']
  readonly title: string
  readonly hasArrived: boolean
}) {
  const { kind, title, hasArrived } = props
  const { arrived, waits } = texts.wizards
  return (
    <div class="record-form waits" role="status">
      <Notice tone={hasArrived ? 'good' : 'plain'}>
        {hasArrived ? arrived[kind](title) : waits[kind](title)}
      </Notice>
    </div>
  )
}

/** Form that creates a record and then shows its enrollment token. */
export function EnrollingWizard(props: EnrollingWizardProps) {
  const { kind, words, bodyOf, tokenIn, children, more } = props
  const { wizards } = texts
  const name = useDraftSignal(`wizards/${kind}/name`, '')
  const roles = useDraftSignal<readonly string[]>(`wizards/${kind}/roles`, [])
  const refused = useMissingPermissionReason([`${findKindAtPath(kind)?.permission ?? ''}.create`])
  const made = useSignal<(RecordEnrollmentToken & { readonly id: string }) | null>(null)
  const madeName = useSignal('')
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const make = async (): Promise<void> => {
    isBusy.value = true
    error.value = null
    try {
      const body = bodyOf(name.value, roles.value)
      const id = (await writeRecord({ method: 'POST', path: collectionApiPath(kind), body })) ?? ''
      const { record } = await readRecord(kind, id)
      made.value = { id, ...tokenIn(record) }
      madeName.value = name.value
      name.value = ''
      roles.value = []
    } catch (failure) {
      error.value = failure
    } finally {
      isBusy.value = false
    }
  }
  const { value: shown } = made
  const hasArrived = useArrival(kind, shown?.id ?? '')
  const title = visibleText(madeName.value)
  return (
    <>
      <WizardHead name={props.name} />
      <StepLine current={shown === null ? 0 : hasArrived ? 2 : 1} />
      {shown === null ? null : <Arrival kind={kind} title={title} hasArrived={hasArrived} />}
      {shown === null ? (
        <CheckedForm
          class="panel record-form"
          label={wizards.titles[props.name]}
          onSubmit={() => {
            if (!isBusy.value && refused === null) void make()
          }}
        >
          <div class="panel-body form">
            {refused === null ? null : <Notice tone="warn">{refused}</Notice>}
            <FailureNotice error={error.value} />
            <TextField
              label={wizards.fields.name.label}
              hint={words.nameHint}
              isRequired
              isFocused
              value={name.value}
              onInput={(typed) => (name.value = typed)}
            />
            <Field label={wizards.attributes} hint={wizards.attributesHint}>
              {(ids) => (
                <RolesInput
                  ids={ids}
                  kind={kind}
                  isOwn
                  semantic="AnyOf"
                  chosen={roles.value}
                  onChange={(chosen) => (roles.value = chosen)}
                />
              )}
            </Field>
            {children}
          </div>
          <div class="form-foot">
            {more ?? <span />}
            <CancelWizard />
            <Button type="submit" kind="primary" isBusy={isBusy.value} refused={refused}>
              {words.make}
            </Button>
          </div>
        </CheckedForm>
      ) : (
        <TokenCard
          title={wizards.enrolls(title)}
          fileName={`${madeName.value}.jwt`}
          jwt={shown.jwt}
          expiresAt={shown.expiresAt}
          kind={kind}
        >
          <LinkButton href={consolePath(kind, shown.id)}>{words.open}</LinkButton>
          <Button
            onClick={() => {
              made.value = null
            }}
          >
            {wizards.another}
          </Button>
        </TokenCard>
      )}
    </>
  )
}
