import { useSignal } from '@preact/signals'

import { texts } from '../../texts.ts'
import { EnrollingWizard, type RecordEnrollmentToken } from './enrolling-wizard.tsx'

function tokenIn(record: object): RecordEnrollmentToken {
  const { enrollmentJwt = '', enrollmentExpiresAt = '' } = record as {
    readonly enrollmentJwt?: string
    readonly enrollmentExpiresAt?: string
  }
  return { jwt: enrollmentJwt, expiresAt: enrollmentExpiresAt }
}

/** Creates an edge router, and shows the token with which it enrolls. */
export function RouterWizard() {
  const { wizards } = texts
  const hasTunnel = useSignal(false)
  return (
    <EnrollingWizard
      name="router"
      kind="edge-routers"
      words={{
        nameHint: wizards.routerHint,
        make: wizards.makeRouter,
        open: wizards.openRouter,
      }}
      bodyOf={(name, roleAttributes) => ({
        name,
        roleAttributes,
        isTunnelerEnabled: hasTunnel.value,
      })}
      tokenIn={tokenIn}
    >
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
    </EnrollingWizard>
  )
}
