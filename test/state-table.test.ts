import { expect, test } from 'vitest'
import { readTransitions } from './contract/facts.ts'
import { titlesIn, withoutTest } from './support/titles.ts'

// Goal: a test proves every state transition that the controller promises. Method: the table of
// transitions as data; each names its tests by file and title, exactly as a run prints them: `file
// > block > test`. `unproven` lists exactly the transitions without a test; if you add a test,
// remove its transition there.

interface Transition {
  readonly name: string
  readonly subject: string
  readonly state: string
  readonly trigger: string
  readonly condition: string
  readonly next: string
  readonly effects: string
  /** Tests in this folder, each as `file > block > test`; rows of a test table share one title. */
  readonly proofs: readonly string[]
}

const table: readonly Transition[] = [
  {
    name: 'log-in with a second factor pending',
    subject: 'API session',
    state: 'none',
    trigger: 'authenticate with a primary credential',
    condition: 'credential valid',
    next: 'partially authenticated',
    effects: 'session token issued',
    proofs: [
      'api/second-factors.test.ts > a log-in under a policy that requires a TOTP code opens a session that lists the missing factor',
      'process/people/mfa.ts > An API session > is partially authenticated on every controller until one of them verifies a code, and fully on all at the next request',
      'api/external-jwt/second-factor.test.ts > a session whose policy requires an external JWT > is fully authenticated in each request with a JWT, and partially in each request without a JWT',
    ],
  },
  {
    name: 'log-in',
    subject: 'API session',
    state: 'none',
    trigger: 'authenticate with a primary credential',
    condition: 'no secondary factor required',
    next: 'fully authenticated',
    effects: 'no further interaction needed',
    proofs: [
      'api/sessions.test.ts > a log-in returns the session, its expiry, and its token in the headers zt-session and net-session',
    ],
  },
  {
    name: 'second factor',
    subject: 'API session',
    state: 'partially authenticated',
    trigger: 'complete MFA with a valid code, or present a valid JWT for the JWT secondary factor',
    condition: 'code or JWT valid',
    next: 'fully authenticated',
    effects: '',
    proofs: [
      'api/mfa.test.ts > a session > whose identity has MFA is partially authenticated until it gets a code, unless the MFA was enrolled in this session',
      'api/mfa.test.ts > a session > becomes fully authenticated with a recovery code; each recovery code works once',
      'process/people/mfa.ts > An API session > is partially authenticated on every controller until one of them verifies a code, and fully on all at the next request',
      'process/people/mfa.ts > An MFA code > that is sent to two controllers at the same moment completes exactly one session, whether it is a time-based code or a recovery code',
      'api/external-jwt/second-factor.test.ts > a session whose policy requires an external JWT > is fully authenticated in each request with a JWT, and partially in each request without a JWT',
    ],
  },
  {
    name: 'end of a session',
    subject: 'API session',
    state: 'any',
    trigger: 'inactivity timeout or logout',
    condition: '',
    next: 'ended',
    effects: 'sessions tied to it are removed',
    proofs: [
      'api/sessions.test.ts > a session expires by inactivity, and every use counts as activity',
      'api/sessions.test.ts > a log-out ends the session immediately',
      'api/sessions.test.ts > an API session that ends by %s ends its service sessions',
    ],
  },
  {
    name: 'session ended by an administrator',
    subject: 'API session',
    state: 'any',
    trigger: 'admin deletes it',
    condition: '',
    next: 'ended',
    effects: '',
    proofs: [
      'api/sessions.test.ts > an administrator lists and ends sessions, and sees no token except that of the calling session',
    ],
  },
  {
    name: 'MFA begun',
    subject: 'MFA enrollment',
    state: 'none',
    trigger: 'initiate MFA enrollment',
    condition: 'not already enrolled',
    next: 'created, unverified',
    effects: 'detail gives provisioningUrl and recoveryCodes',
    proofs: [
      'api/mfa.test.ts > an MFA enrollment > shows its secret and recovery codes after its start, and does not affect sessions',
      'process/people/mfa.ts > An MFA enrollment > that is started on one controller can be restarted and verified on others, and is then enabled on all',
    ],
  },
  {
    name: 'MFA begun twice',
    subject: 'MFA enrollment',
    state: 'completed',
    trigger: 'initiate MFA enrollment',
    condition: '',
    next: 'unchanged',
    effects: '409',
    proofs: [
      'api/mfa.test.ts > an MFA enrollment > is verified by a time-based code, not by a recovery code, and does not show its secrets afterwards',
      'process/people/mfa.ts > An MFA enrollment > that is started on one controller can be restarted and verified on others, and is then enabled on all',
    ],
  },
  {
    name: 'MFA verified',
    subject: 'MFA enrollment',
    state: 'unverified',
    trigger: 'verify with a time-based one-time code',
    condition: 'code valid',
    next: 'verified',
    effects: 'recovery codes viewable',
    proofs: [
      'api/mfa.test.ts > an MFA enrollment > is verified by a time-based code, not by a recovery code, and does not show its secrets afterwards',
      'api/mfa.test.ts > recovery codes > are shown after a time-based code in the body or the header, but not after a recovery code',
      'process/people/mfa.ts > An MFA enrollment > that is started on one controller can be restarted and verified on others, and is then enabled on all',
    ],
  },
  {
    name: 'MFA disabled by its holder',
    subject: 'MFA enrollment',
    state: 'verified',
    trigger: 'disable by the identity',
    condition: '',
    next: 'none',
    effects: '',
    proofs: [
      'api/mfa.test.ts > an MFA enrollment > can be deleted after its verification only with a time-based code or a recovery code',
      'api/mfa.test.ts > an MFA enrollment > can be started again with a new secret, or deleted without a code, until it is verified',
      'process/people/mfa.ts > An MFA enrollment > that its holder removes on one controller requires no code on any controller',
    ],
  },
  {
    name: 'MFA removed by an administrator',
    subject: 'MFA enrollment',
    state: 'any',
    trigger: 'admin removes MFA from an identity',
    condition: '',
    next: 'none',
    effects: '',
    proofs: [
      'api/mfa.test.ts > an administrator who manages MFA of other identities > can remove MFA from an identity, verified or not; the identity’s sessions then require no code',
      'process/people/mfa.ts > An MFA enrollment > that an administrator removes on one controller makes partially authenticated sessions fully authenticated on every controller',
    ],
  },
  {
    name: 'recovery codes made anew',
    subject: 'MFA recovery codes',
    state: 'verified enrollment',
    trigger: 'regenerate',
    condition: '',
    next: 'verified',
    effects: 'all previous codes replaced',
    proofs: [
      'api/mfa.test.ts > recovery codes > are all replaced by new ones after a time-based code or a recovery code',
      'process/people/mfa.ts > MFA recovery codes > that are used or replaced on one controller are refused on all, and each controller shows the remaining ones',
    ],
  },
  {
    name: 'CA created',
    subject: 'CA',
    state: 'none',
    trigger: 'create',
    condition: '',
    next: 'unverified',
    effects: 'verificationToken generated; of no use yet',
    proofs: [
      'api/cas.test.ts > CA states (state, action: result) > none, create: the CA is unverified (`isVerified` false) with a generated `verificationToken`, and its certificates are refused as authenticators',
      'process/people/enrollment.ts > A CA > that is created on one controller is refused on all until it is verified on another, and then accepted on the third',
    ],
  },
  {
    name: 'CA verified',
    subject: 'CA',
    state: 'unverified',
    trigger: 'verify',
    condition: 'certificate signed by the CA whose common name is the token',
    next: 'verified',
    effects: '',
    proofs: [
      'api/cas.test.ts > CA states (state, action: result) > unverified, verify with a PEM certificate that the CA signed and whose common name equals `verificationToken`: verified',
      'process/people/enrollment.ts > A CA > that is created on one controller is refused on all until it is verified on another, and then accepted on the third',
    ],
  },
  {
    name: 'CA deleted',
    subject: 'CA',
    state: 'any',
    trigger: 'delete',
    condition: '',
    next: 'deleted',
    effects: 'its certificate authenticators are deleted',
    proofs: [
      'api/cas.test.ts > CA states (state, action: result) > verified, delete: the CA is deleted together with its certificate authenticators',
      'process/people/enrollment.ts > A CA > that is deleted on one controller loses its authenticators, sessions and open enrollments on every controller',
    ],
  },
  {
    name: 'client certificate extended',
    subject: 'Identity client certificate (controller-issued)',
    state: 'old certificate active',
    trigger: 'extend with CSR',
    condition: '',
    next: 'new certificate returned, old still active',
    effects: '',
    proofs: [
      'api/enrollment/certificates.test.ts > an extended certificate > replaces the current certificate only after its holder has presented the new one',
      'fsm/enrolling.test.ts > the certificate of an identity > stays valid during an extension until the new certificate is verified',
      'process/people/enrollment.ts > The client certificate of an identity > that enrolled on one controller can log in on another and be extended on a third; it is valid until the new certificate is verified',
    ],
  },
  {
    name: 'client certificate confirmed',
    subject: 'Identity client certificate',
    state: 'new certificate returned',
    trigger: 'extend-verify with the returned certificate',
    condition: '',
    next: 'new certificate must be used for new connections',
    effects: '',
    proofs: [
      'api/enrollment/certificates.test.ts > an extended certificate > replaces the current certificate only after its holder has presented the new one',
      'fsm/enrolling.test.ts > the certificate of an identity > stays valid during an extension until the new certificate is verified',
      'process/people/enrollment.ts > The client certificate of an identity > that enrolled on one controller can log in on another and be extended on a third; it is valid until the new certificate is verified',
    ],
  },
  {
    name: 'router certificates extended',
    subject: 'Router certificates',
    state: 'current',
    trigger: 'extend with CSRs, using the existing valid client certificate',
    condition: '',
    next: 'new certificates returned',
    effects: 'the previous client certificate becomes invalid',
    proofs: [
      'api/enrollment/enrolling.test.ts > routers > extend their certificate, and the previous one becomes invalid when they use the new one',
      'fsm/enrolling.test.ts > a router that enrolls > can extend its certificate only with the current certificate, which becomes invalid in the log entry of the extension',
      'process/people/enrollment.ts > The certificates of a router > that were enrolled on one controller can be extended on another; the new ones replace them everywhere, and a re-enrollment requires a new token',
      'process/router-program.test.ts > a router renews its certificates, and controllers accept the new ones',
    ],
  },
  {
    name: 'enrollment created',
    subject: 'Outstanding enrollment',
    state: 'none',
    trigger: 'create',
    condition: 'none outstanding of the same type for the identity',
    next: 'outstanding',
    effects: 'otherwise 409',
    proofs: [
      'api/enrollments.test.ts > The creation of an enrollment > returns a token and a JWT signed by this controller, and the record of the identity shows the enrollment',
      'api/enrollments.test.ts > The creation of an enrollment > is refused with 409 if the identity already has an open enrollment of the same type',
      'process/people/enrollment.ts > An open enrollment > that was created on one controller and refreshed on another is refused everywhere with its earlier token, and accepted with the new one',
    ],
  },
  {
    name: 'enrollment refreshed',
    subject: 'Outstanding enrollment',
    state: 'outstanding or expired',
    trigger: 'refresh with new expiresAt',
    condition: '',
    next: 'outstanding',
    effects: 'new JWT; the previous one is unusable',
    proofs: [
      'api/enrollments.test.ts > The refresh of an open or expired enrollment > creates a new JWT and invalidates the previous one',
      'api/enrollments.test.ts > The refresh of an open or expired enrollment > is possible for an expired enrollment, which stays listed until the refresh',
      'process/people/enrollment.ts > An open enrollment > that was created on one controller and refreshed on another is refused everywhere with its earlier token, and accepted with the new one',
    ],
  },
  {
    name: 'enrollment deleted',
    subject: 'Outstanding enrollment',
    state: 'outstanding',
    trigger: 'delete',
    condition: '',
    next: 'none',
    effects: '',
    proofs: [
      'api/enrollments.test.ts > The deletion of an open enrollment > removes the enrollment, also from the record of the identity',
      'process/people/enrollment.ts > An open enrollment > that was created on one controller and deleted on another is refused everywhere',
    ],
  },
  {
    name: 'authenticator re-enrolled',
    subject: 'Authenticator',
    state: 'exists',
    trigger: 're-enroll with expiresAt',
    condition: '',
    next: 'authenticator deleted; enrollment created',
    effects: 'updb gives updb, cert gives ott, cert with CA gives ottca',
    proofs: [
      'api/enrollments.test.ts > The re-enrollment of an authenticator with expiresAt > deletes the authenticator and creates an enrollment of the same type, which keeps the user name of a password',
      'api/certificate-authenticators.test.ts > a certificate authenticator that an administrator creates for an identity > is replaced by an ott enrollment when an administrator re-enrolls it',
      'api/cas.test.ts > re-enrolling a certificate authenticator that a CA issued creates an ottca enrollment for that CA',
      'process/people/enrollment.ts > An authenticator > with a password is re-enrolled as updb: the password is refused everywhere, and a new one is set with the new token',
      'process/people/enrollment.ts > An authenticator > with a certificate of the network is re-enrolled as ott: the certificate and its sessions are refused everywhere',
      'process/people/enrollment.ts > An authenticator > with a certificate of a CA is re-enrolled as ottca: the certificate is refused everywhere until it is presented with the new token',
    ],
  },
  {
    name: 'edge router re-enrolled',
    subject: 'Edge router',
    state: 'enrolled',
    trigger: 're-enroll',
    condition: '',
    next: 'certificate authentication removed; enrollment required',
    effects: 'the rest is kept; a connected router is disconnected',
    proofs: [
      'api/routers.test.ts > The re-enrollment of an edge router > requires a new enrollment with a new token, invalidates every earlier token, and keeps the role attributes and the cost',
      'fsm/routers.test.ts > The re-enrollment of an enrolled edge router > removes the certificate, keeps other properties and related records, and replaces an open enrollment token',
      'process/people/enrollment.ts > The certificates of a router > that were enrolled on one controller can be extended on another; the new ones replace them everywhere, and a re-enrollment requires a new token',
      'process/router-program.test.ts > a router is disconnected from all controllers when it must enroll again, and is online after it has enrolled',
    ],
  },
  {
    name: 'identity disabled',
    subject: 'Identity',
    state: 'enabled',
    trigger: 'disable with durationMinutes',
    condition: '',
    next: 'disabled',
    effects: 'sessions are refused for so long, 0: for good; disabledAt, disabledUntil',
    proofs: [
      'api/disabled-identities.test.ts > an identity that is disabled for some minutes is refused until disabledUntil, with an existing session and at log-in',
      'api/disabled-identities.test.ts > an identity disabled for 0 minutes stays disabled permanently',
      'process/people/enrollment.ts > The client certificate of an identity > is refused on every controller while the identity is disabled, and so are the sessions of the identity',
    ],
  },
  {
    name: 'identity enabled',
    subject: 'Identity',
    state: 'disabled',
    trigger: 'clear disabled state',
    condition: '',
    next: 'enabled',
    effects: '',
    proofs: [
      'api/disabled-identities.test.ts > an identity that is enabled again can log in immediately, and its record does not show that it was disabled',
      'process/people/enrollment.ts > The client certificate of an identity > is refused on every controller while the identity is disabled, and so are the sessions of the identity',
    ],
  },
  {
    name: 'integrity run begun',
    subject: 'Data integrity run',
    state: 'idle',
    trigger: 'start check or fix',
    condition: 'no other run in progress',
    next: 'running',
    effects: '202; one run at a time',
    proofs: [
      'api/database.test.ts > the data integrity check > has one run at a time, and reports an error for a run whose controller has stopped',
    ],
  },
  {
    name: 'integrity run ended',
    subject: 'Data integrity run',
    state: 'running',
    trigger: 'finishes',
    condition: '',
    next: 'idle',
    effects: 'results available',
    proofs: [
      'api/database.test.ts > the data integrity check > reports no fault for a correct state',
      'api/database.test.ts > the data integrity check > reports damage in the state, repairs it, and then reports no fault',
    ],
  },
]

/** Transitions that no test proves yet. */
const unproven: readonly string[] = []

test('every transition in the state table is proven by a test, except for the transitions that this file lists', () => {
  const proofs = table.flatMap((transition) => transition.proofs)
  expect(
    withoutTest(proofs),
    'the test was renamed or removed: name the test that proves the row now',
  ).toEqual([])
  const lacking = table.filter((transition) => transition.proofs.length === 0)
  expect(lacking.map(({ name }) => name)).toEqual(unproven)
})

test('a proof in the state table counts only if a test with exactly this file and title exists and is not skipped', () => {
  const source = `
test('plain', () => {})
describe('block', () => {
  test('inside', async () => {})
  test.each([
    ['a row', f('x')],
  ] as const)('row %s', () => {})
  describe.each(['x'])('of %s', () => {
    test("it's within", () => {})
  })
  test.skip('skipped', () => {})
  test.skipIf(isOff())('skipped by a condition', () => {})
  // test('left out', () => {})
})
describe.skipIf(!existsSync('folder'))('absent', () => {
  test('never', () => {})
})
test.for(ends)(
  'on a line of its own',
  () => {},
)
`
  expect(titlesIn(source)).toEqual([
    'plain',
    'block > inside',
    'block > row %s',
    "block > of %s > it's within",
    'on a line of its own',
  ])
  const file = 'state-table.test.ts'
  const title =
    'the state table contains exactly the transitions in test/contract/transitions.txt, in the same order'
  const proof = `${file} > ${title}`
  const wrong = [proof.slice(0, -1), `${proof}.`, `${file} > block > ${title}`]
  wrong.push(`${file} > T${title.slice(1)}`, `api/${proof}`, file, title)
  expect(withoutTest([proof, ...wrong])).toEqual(wrong)
})

test('the state table contains exactly the transitions in test/contract/transitions.txt, in the same order', () => {
  expect(table.map(({ subject, state, trigger }) => ({ subject, state, trigger }))).toEqual(
    readTransitions(),
  )
})
