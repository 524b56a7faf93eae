import {
  flagShape,
  listOf,
  nullable,
  objectOf,
  optional,
  textShape,
  timeShape,
} from '../client/answer-shape.ts'

const certificate = objectOf({ subject: textShape, notAfterMs: timeShape })
const inForce = objectOf({
  certificates: listOf(certificate),
  issuingPem: nullable(textShape),
  isRenewedHere: optional(flagShape),
  renewAtMs: optional(nullable(timeShape)),
  refused: nullable(textShape),
  alarm: nullable(textShape),
  // Controllers of 0.1.0 do not say it.
  serverCertificates: optional(
    listOf(
      objectOf({
        path: textShape,
        certificate: nullable(certificate),
        refused: nullable(textShape),
      }),
    ),
  ),
})

/** What the verbs of `flotilla pki` rely on in the answers of a controller. */
export const pkiShapes = {
  certificates: inForce,
  renew: inForce,
  reload: inForce,
  'renew-member': objectOf({ id: textShape, certificatePem: textShape, notAfterMs: timeShape }),
  'issuing-authority': objectOf({ notAfterMs: timeShape, formerNotAfterMs: timeShape }),
  issue: objectOf({ certificatePem: textShape, notAfterMs: timeShape }),
} as const
