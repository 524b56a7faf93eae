import {
  totpProvisioningUrl,
  qrCodePng,
  totpManualEntryText,
} from '../../auth/factors/provisioning.ts'
import type { FactorSecrets } from '../../pki/secrets/factor-secrets.ts'
import type { Reply } from '../http/responses/envelope.ts'
import { renderFormPage, type LogInFlowPage } from './log-in-pages.ts'
import { escapeHtml } from '../../lib/text/escape-html.ts'

/**
 * Form field that contains the ID of the TOTP enrollment whose secret the page shows. The ID is not
 * secret.
 */
export const TOTP_ENROLLMENT_FIELD = 'enrollment'

/** A TOTP enrollment that is not verified yet. */
interface ShownEnrollment {
  readonly secretId: string
  readonly factor: FactorSecrets
  readonly identityName: string
}

/**
 * The page that shows the TOTP secret and the recovery codes, and has a field for the first code of
 * the authenticator app.
 */
export function renderTotpEnrollmentPage(page: LogInFlowPage, shown: ShownEnrollment): Reply {
  const { secretId, factor, identityName } = shown
  const image = qrCodePng(totpProvisioningUrl(factor.secret, identityName)).toString('base64')
  const codes = factor.recoveryCodes.map((code) => `<li><code>${escapeHtml(code)}</code></li>`)
  // No field gets the focus: a phone would scroll to the field, away from the QR code.
  const fields =
    `<input type="hidden" name="${TOTP_ENROLLMENT_FIELD}" value="${escapeHtml(secretId)}">` +
    '<h2>1. Add it to the app</h2><p>Scan this with the app:</p>' +
    `<img class="qr" src="data:image/png;base64,${image}" alt="QR code of the key below">` +
    '<p>Or type this key into it, as a time-based one:</p>' +
    `<p class="key">${totpManualEntryText(factor.secret)}</p>` +
    '<h2>2. Keep the recovery codes</h2>' +
    '<p>Each replaces a code of the app once, for the day when the app is gone. Write them down or ' +
    'print them, and keep them apart from the app: they are not shown again.</p>' +
    `<ul class="list">${codes.join('')}</ul>` +
    '<h2>3. Enter the code of the app</h2><label for="code">Code</label>' +
    '<input id="code" name="code" autocomplete="one-time-code" inputmode="numeric" ' +
    'spellcheck="false" required>'
  const form = {
    path: '/login/totp/enroll/verify',
    title: 'Set up an authenticator app',
    fields,
    button: 'Finish and log in',
  }
  return renderFormPage(page, form)
}
