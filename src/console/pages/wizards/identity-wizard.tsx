import { consolePath } from '../../app/navigation.ts'
import { texts } from '../../texts.ts'
import { EnrollingWizard, type RecordEnrollmentToken } from './enrolling-wizard.tsx'

function tokenIn(record: object): RecordEnrollmentToken {
  const { enrollment } = record as { readonly enrollment?: { readonly ott?: object } }
  const { jwt = '', expiresAt = '' } = (enrollment?.ott ?? {}) as Partial<RecordEnrollmentToken>
  return { jwt, expiresAt }
}

/** Creates an identity, and shows the token with which its device enrolls. */
export function IdentityWizard() {
  const { wizards } = texts
  return (
    <EnrollingWizard
      name="identity"
      kind="identities"
      words={{
        nameHint: wizards.identityHint,
        make: wizards.makeIdentity,
        open: wizards.openIdentity,
      }}
      bodyOf={(name, roleAttributes) => ({
        name,
        type: 'Device',
        isAdmin: false,
        roleAttributes,
        enrollment: { ott: true },
      })}
      tokenIn={tokenIn}
      more={<a href={consolePath('identities', 'new')}>{wizards.plainIdentity}</a>}
    />
  )
}
