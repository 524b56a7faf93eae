import { useSignal } from '@preact/signals'

import { FailureNotice } from '../../app/failure.tsx'
import { pathTo } from '../../app/navigation.ts'
import { PageHead } from '../../app/page-head.tsx'
import { isReadOnly } from '../../app/services.ts'
import { Button, LinkButton } from '../../controls/button.tsx'
import { Field, TextField } from '../../controls/field.tsx'
import { texts } from '../../texts.ts'
import { collectionPath, readRecord, write } from '../records/record-data.ts'
import { RolesInput } from '../records/reference-inputs.tsx'
import { TokenCard } from './token-card.tsx'

interface Enrolled {
  readonly id: string
  readonly name: string
  readonly jwt: string
  readonly expiresAt: string
}

async function enroll(name: string, roleAttributes: readonly string[]): Promise<Enrolled> {
  const id = await write({
    method: 'POST',
    path: collectionPath('identities'),
    body: { name, type: 'Device', isAdmin: false, roleAttributes, enrollment: { ott: true } },
  })
  const { record } = await readRecord('identities', id ?? '')
  const { enrollment } = record as {
    readonly enrollment?: { readonly ott?: { readonly jwt?: string; readonly expiresAt?: string } }
  }
  const { jwt = '', expiresAt = '' } = enrollment?.ott ?? {}
  return { id: id ?? '', name, jwt, expiresAt }
}

/** A new identity, and the token by which its device enrolls. */
export function IdentityWizard() {
  const { wizards } = texts
  const name = useSignal('')
  const roles = useSignal<readonly string[]>([])
  const made = useSignal<Enrolled | null>(null)
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const run = (): void => {
    isBusy.value = true
    error.value = null
    enroll(name.value, roles.value)
      .then((found) => (made.value = found))
      .catch((failure: unknown) => (error.value = failure))
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const { value: shown } = made
  return (
    <>
      <PageHead title={wizards.titles.identity} lead={wizards.what.identity} />
      {shown === null ? (
        <form
          class="panel record-form"
          aria-label={wizards.titles.identity}
          onSubmit={(event) => {
            event.preventDefault()
            if (!isBusy.value) run()
          }}
        >
          <div class="panel-body form">
            <FailureNotice error={error.value} />
            <TextField
              label={wizards.fields.name.label}
              hint={wizards.identityHint}
              isRequired
              isFocused
              value={name.value}
              onInput={(typed) => (name.value = typed)}
            />
            <Field label={wizards.attributes} hint={wizards.attributesHint}>
              {(ids) => (
                <RolesInput
                  ids={ids}
                  kind="identities"
                  isOwn
                  semantic="AnyOf"
                  chosen={roles.value}
                  onChange={(chosen) => (roles.value = chosen)}
                />
              )}
            </Field>
          </div>
          <div class="form-foot">
            <span />
            <Button
              type="submit"
              kind="primary"
              isBusy={isBusy.value}
              refused={isReadOnly.value ? texts.banner.refused : null}
            >
              {wizards.makeIdentity}
            </Button>
          </div>
        </form>
      ) : (
        <TokenCard
          title={wizards.enrolls(shown.name)}
          fileName={`${shown.name}.jwt`}
          jwt={shown.jwt}
          expiresAt={shown.expiresAt}
          command={wizards.identityCommand}
        >
          <LinkButton href={pathTo('identities', shown.id)}>{wizards.openIdentity}</LinkButton>
          <Button
            onClick={() => {
              made.value = null
              name.value = ''
            }}
          >
            {wizards.another}
          </Button>
        </TokenCard>
      )}
    </>
  )
}
