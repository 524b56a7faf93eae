import { prepareAuthPolicyBody } from '../../entities/auth-policy-body.ts'
import type { WritePreparer } from './write-preparer.ts'

export const prepareAuthPolicy: WritePreparer = (_call, mode, body) =>
  prepareAuthPolicyBody(mode, body)
