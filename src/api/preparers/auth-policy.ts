import { prepareAuthPolicyBody } from '../../entities/auth-policy-body.ts'
import type { Preparer } from './preparer.ts'

export const prepareAuthPolicy: Preparer = (_call, mode, body) => prepareAuthPolicyBody(mode, body)
