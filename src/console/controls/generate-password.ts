const CHARACTERS = 20
/** 64 characters, so that each random byte gives one of them with equal chance. */
const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
/** Kinds of characters that an authentication policy may require in a password. */
const required = [/[a-z]/, /[A-Z]/, /\d/, /[-_]/]

/** A random password that meets each rule that an authentication policy can have. */
export function generatePassword(): string {
  for (;;) {
    const bytes = crypto.getRandomValues(new Uint8Array(CHARACTERS))
    const made = [...bytes].map((byte) => ALPHABET[byte % ALPHABET.length]).join('')
    if (required.every((rule) => rule.test(made))) return made
  }
}
