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

interface NewRouter {
  readonly id: string
  readonly name: string
  readonly jwt: string
  readonly expiresAt: string
}

async function create(
  name: string,
  roleAttributes: readonly string[],
  isTunnelerEnabled: boolean,
): Promise<NewRouter> {
  const id = await write({
    method: 'POST',
    path: collectionPath('edge-routers'),
    body: { name, roleAttributes, isTunnelerEnabled },
  })
  const { record } = await readRecord('edge-routers', id ?? '')
  const { enrollmentJwt, enrollmentExpiresAt } = record as {
    readonly enrollmentJwt?: string
    readonly enrollmentExpiresAt?: string
  }
  return { id: id ?? '', name, jwt: enrollmentJwt ?? '', expiresAt: enrollmentExpiresAt ?? '' }
}

/** A new edge router, and the token by which it enrolls. */
export function RouterWizard() {
  const { wizards } = texts
  const name = useSignal('')
  const roles = useSignal<readonly string[]>([])
  const hasTunnel = useSignal(false)
  const made = useSignal<NewRouter | null>(null)
  const error = useSignal<unknown>(null)
  const isBusy = useSignal(false)
  const run = (): void => {
    isBusy.value = true
    error.value = null
    create(name.value, roles.value, hasTunnel.value)
      .then((found) => (made.value = found))
      .catch((failure: unknown) => (error.value = failure))
      .finally(() => (isBusy.value = false))
      .catch(() => undefined)
  }
  const { value: shown } = made
  if (shown !== null) {
    return (
      <>
        <PageHead title={wizards.titles.router} lead={wizards.what.router} />
        <TokenCard
          title={wizards.enrolls(shown.name)}
          fileName={`${shown.name}.jwt`}
          jwt={shown.jwt}
          expiresAt={shown.expiresAt}
          command={wizards.routerCommand}
        >
          <LinkButton href={pathTo('edge-routers', shown.id)}>{wizards.openRouter}</LinkButton>
        </TokenCard>
      </>
    )
  }
  return (
    <>
      <PageHead title={wizards.titles.router} lead={wizards.what.router} />
      <form
        class="panel record-form"
        aria-label={wizards.titles.router}
        onSubmit={(event) => {
          event.preventDefault()
          if (!isBusy.value) run()
        }}
      >
        <div class="panel-body form">
          <FailureNotice error={error.value} />
          <TextField
            label={wizards.fields.name.label}
            hint={wizards.routerHint}
            isRequired
            isFocused
            value={name.value}
            onInput={(typed) => (name.value = typed)}
          />
          <Field label={wizards.attributes} hint={wizards.attributesHint}>
            {(ids) => (
              <RolesInput
                ids={ids}
                kind="edge-routers"
                isOwn
                semantic="AnyOf"
                chosen={roles.value}
                onChange={(chosen) => (roles.value = chosen)}
              />
            )}
          </Field>
          <label class="check">
            <input
              type="checkbox"
              checked={hasTunnel.value}
              onChange={({ currentTarget }) => (hasTunnel.value = currentTarget.checked)}
            />
            <span>
              <span class="label">{wizards.tunnel}</span>
              <span class="hint block">{wizards.tunnelHint}</span>
            </span>
          </label>
        </div>
        <div class="form-foot">
          <span />
          <Button
            type="submit"
            kind="primary"
            isBusy={isBusy.value}
            refused={isReadOnly.value ? texts.banner.refused : null}
          >
            {wizards.makeRouter}
          </Button>
        </div>
      </form>
    </>
  )
}
